package jsonwire_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// tagRuler is a small ruler: it reads rules from tags, as a package on top of jsonwire would.
type tagRuler struct{}

func (tagRuler) Member(_ reflect.Type, _ string, f reflect.StructField) (m jsonwire.MemberRules, err error) {
	if f.Tag.Get("required") != "" {
		m.Required = true
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		m.Default = []byte(text)
	}
	if name := f.Tag.Get("requires"); name != "" {
		m.Requires = []string{name}
	}
	m.Checks = checksOf(f.Tag)
	if text, ok := f.Tag.Lookup("raw"); ok {
		m.Checks = append(m.Checks, jsonwire.Raw(func(b []byte) bool { return string(b) == text }))
	}
	if elem := f.Tag.Get("each"); elem != "" {
		m.Elem = &jsonwire.Rules{Checks: checksOf(reflect.StructTag(elem))}
	}
	if f.Tag.Get("bad") != "" {
		err = errFailing
	}
	return m, err
}

func checksOf(tag reflect.StructTag) (list []jsonwire.Check) {
	between := func(name string) (low, high int, ok bool) {
		text, ok := tag.Lookup(name)
		if a, b, both := strings.Cut(text, ".."); both {
			low, _ = strconv.Atoi(a)
			high, _ = strconv.Atoi(b)
		}
		return low, high, ok
	}
	if low, high, ok := between("int"); ok {
		list = append(list, jsonwire.IntRange(int64(low), int64(high)))
	}
	if low, high, ok := between("uint"); ok {
		list = append(list, jsonwire.UintRange(uint64(low), uint64(high)))
	}
	if low, high, ok := between("float"); ok {
		list = append(list, jsonwire.FloatRange(float64(low), float64(high), true, false))
	}
	if text, ok := tag.Lookup("near"); ok {
		near := jsonwire.FloatRange(0, 1, true, true)
		list = append(list, near.OrRaw(func(b []byte) bool { return string(b) == text }))
	}
	if low, high, ok := between("length"); ok {
		list = append(list, jsonwire.Length(low, high))
	}
	if low, high, ok := between("count"); ok {
		list = append(list, jsonwire.Count(low, high))
	}
	if text, ok := tag.Lookup("pattern"); ok {
		list = append(list, jsonwire.Text(regexp.MustCompile(text).MatchString))
	}
	if text, ok := tag.Lookup("enum"); ok {
		list = append(list, jsonwire.Text(func(v string) bool { return slices.Contains(strings.Split(text, "|"), v) }))
	}
	if text, ok := tag.Lookup("multiple"); ok {
		n, _ := strconv.Atoi(text)
		list = append(list, jsonwire.Int(func(v int64) bool { return v%int64(n) == 0 }))
	}
	return list
}

type (
	color string
	span  struct {
		From int `json:"from"`
		To   int `json:"to"`
	}
	optional[T any] struct {
		value T
		set   bool
	}
	nullable[T any] struct {
		value     T
		set, null bool
	}
	ruled struct {
		Name   string             `json:"name" required:"1" length:"2..5"`
		Age    int8               `json:"age" int:"0..100" multiple:"2"`
		Size   uint16             `json:"size" uint:"1..9" default:"3"`
		Ratio  float32            `json:"ratio" float:"0..1"`
		Tags   []string           `json:"tags" count:"1..2" each:"length:\"1..3\""`
		Sizes  map[string]*int    `json:"sizes" count:"0..1" each:"int:\"1..5\""`
		Fixed  [2]int             `json:"fixed" count:"2..2"`
		Once   *[]any             `json:"once" raw:"[ 1 ]"`
		Near   float64            `json:"near" near:"1.0"`
		Mail   nullable[string]   `json:"mail" pattern:"@"`
		Nick   optional[string]   `json:"nick" length:"1..3" requires:"name"`
		Color  color              `json:"color" enum:"red|blue"`
		Colors []*color           `json:"colors" each:"enum:\"red|blue\""`
		Span   *span              `json:"span"`
		When   time.Time          `json:"when" pattern:"^2026-"`
		Items  []item             `json:"items"`
		Quoted int                `json:"quoted,string" int:"1..3"`
		Both   optional[*color]   `json:"both" enum:"red|blue"`
		Deep   nullable[[]item]   `json:"deep" count:"1..1"`
		Kids   []ruled            `json:"kids" count:"1..3"`
		ByName map[string][]ruled `json:"byName" each:"count:\"1..3\""`
	}
	item struct {
		ID  int `json:"id" required:"1"`
		Qty int `json:"qty" default:"1" int:"1..10"`
	}
)

func (optional[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "value", Set: "set"}
}

func (nullable[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "value", Set: "set", Null: "null", AcceptNull: true}
}

// strict has every limit that refuses a text.
var strict = jsonwire.Limits{UnknownMembers: true, DuplicateMembers: true, InvalidUTF8: true, CaseSensitive: true, FractionlessFloat: true}

func compile[T any](tb testing.TB) *jsonwire.Decoder {
	tb.Helper()
	d, err := jsonwire.Compile(reflect.TypeFor[T](), nil, tagRuler{}, jsonwire.Strictness{RefuseNull: true})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// found returns the kind and the pointer of a refusal.
func found(err error) string {
	r, ok := errors.AsType[*jsonwire.Refusal](err)
	if !ok {
		return ""
	}
	return r.Kind.String() + " " + r.Pointer
}

func TestRules(t *testing.T) {
	d := compile[ruled](t)
	for _, c := range []struct {
		name, text, want string
	}{
		{"valid", `{"name":"abc","age":10,"size":1,"ratio":0.5,"tags":["a"],"sizes":{"x":5},"fixed":[1,2],"mail":"a@b","nick":"n","color":"red",
			"colors":["blue",null],"span":{"from":1,"to":2},"when":"2026-01-01T00:00:00Z","items":[{"id":1}],"quoted":"2","both":"red","deep":[{"id":1}]}`, ""},
		{"missing", `{}`, "missing member /name"},
		{"missing, in an array", `{"name":"abc","items":[{"id":1},{"qty":2}]}`, "missing member /items/1/id"},
		{"too short", `{"name":"a"}`, "rule broken /name"},
		{"too long", `{"name":"abcdef"}`, "rule broken /name"},
		{"characters, not bytes", `{"name":"ééééé"}`, ""},
		{"too few characters", `{"name":"\u00e9"}`, "rule broken /name"},
		{"too many characters", `{"name":"éééééé"}`, "rule broken /name"},
		{"two rules of one value", `{"name":"abc","age":-1}`, "rule broken /age"},
		{"whole number", `{"name":"abc","age":1.0e1}`, ""},
		{"fraction", `{"name":"abc","age":1.5}`, "unfit value /age"},
		{"unsigned", `{"name":"abc","size":10}`, "rule broken /size"},
		{"exclusive", `{"name":"abc","ratio":0}`, "rule broken /ratio"},
		{"inclusive", `{"name":"abc","ratio":1}`, ""},
		{"count", `{"name":"abc","tags":[],"fixed":[1,2,3]}`, "rule broken /tags"},
		{"elements", `{"name":"abc","tags":["","abcd"]}`, "rule broken /tags/0"},
		{"values of a map", `{"name":"abc","sizes":{"a":0,"b/~":6}}`, "rule broken /sizes/a"},
		{"raw", `{"name":"abc","once": [ 1 ] }`, ""},
		{"raw, other text", `{"name":"abc","once":[1]}`, "rule broken /once"},
		{"text accepted by OrRaw", `{"name":"abc","near":1.0}`, ""},
		{"text refused by OrRaw", `{"name":"abc","near":1}`, "rule broken /near"},
		{"null, accepted", `{"name":"abc","mail":null,"span":null,"colors":[null],"both":null,"deep":null}`, ""},
		{"null, refused", `{"name":null,"age":null,"tags":null,"when":null,"sizes":null,"fixed":null,"color":null,"nick":null,"quoted":null,"items":[null]}`,
			"unfit value /name"},
		{"in a nullable", `{"name":"abc","mail":"x"}`, "rule broken /mail"},
		{"in an optional", `{"name":"abc","nick":"long"}`, "rule broken /nick"},
		{"requires", `{"nick":"n"}`, "missing member /name"},
		{"rule of a type", `{"name":"abc","color":"green","colors":["red","grey"],"both":"pink"}`, "rule broken /color"},
		{"text of a type with a method", `{"name":"abc","when":"2025-01-01T00:00:00Z"}`, "rule broken /when"},
		{"quoted", `{"name":"abc","quoted":"4"}`, "rule broken /quoted"},
		{"count in a nullable", `{"name":"abc","deep":[]}`, "rule broken /deep"},
		{"recursive", `{"name":"abc","kids":[{"name":"a"},{}]}`, "rule broken /kids/0/name"},
		{"recursive, in a map", `{"name":"abc","byName":{"k":[],"l":[{"name":"abc","kids":[]}]}}`, "rule broken /byName/k"},
		{"unknown", `{"name":"abc","Name":"x","other":{"a":[1]}}`, "unknown member /Name"},
		{"duplicate", `{"name":"abc","age":2,"name":"abd","sizes":{"x":1,"x":2}}`, "member twice /name"},
		{"invalid UTF-8", "{\"name\":\"a\xff\",\"nick\":\"\\ud800\"}", "invalid UTF-8 /name"},
		{"wrong types everywhere", `{"name":1,"age":"x","tags":{},"items":[1,{"id":"x"}],"span":[],"color":{"a":1}}`,
			"unfit value /name"},
		{"invalid JSON", `{"name":1,"age":}`, "invalid JSON "},
		{"whole value", `[]`, "unfit value "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v ruled
			err := d.Decode([]byte(c.text), &v, strict)
			if got := found(err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDefaultsAndWrappers(t *testing.T) {
	d := compile[ruled](t)
	var v ruled
	if err := d.Decode([]byte(`{"name":"abc","mail":null,"nick":"n","items":[{"id":1},{"id":2,"qty":5}]}`), &v, strict); err != nil {
		t.Fatal(err)
	}
	if v.Size != 3 || v.Items[0].Qty != 1 || v.Items[1].Qty != 5 {
		t.Errorf("defaults: got %+v", v)
	}
	if v.Mail != (nullable[string]{null: true}) || v.Nick != (optional[string]{"n", true}) || v.Both.set || v.Deep.null {
		t.Errorf("wrappers: got %+v", v)
	}
	v = ruled{}
	if err := d.Decode([]byte(`{"name":"abc","mail":"a@b","both":null,"deep":[{"id":1}]}`), &v, strict); err != nil {
		t.Fatal(err)
	}
	if v.Mail != (nullable[string]{value: "a@b", set: true}) || !v.Both.set || v.Both.value != nil || len(v.Deep.value) != 1 || !v.Deep.set {
		t.Errorf("wrappers: got %+v", v)
	}
	// The last of two duplicate members counts, even if no limit refuses duplicates.
	if err := d.Decode([]byte(`{"name":"abc","mail":null}`), &v, jsonwire.Limits{}); err != nil || v.Mail != (nullable[string]{null: true}) {
		t.Errorf("null after a value: got %+v, error %v", v.Mail, err)
	}
}

func TestRulesOfWholeDocument(t *testing.T) {
	rules := &jsonwire.Rules{
		Checks: []jsonwire.Check{jsonwire.Count(1, 2)},
		Elem:   &jsonwire.Rules{Checks: []jsonwire.Check{jsonwire.IntRange(1, 9)}},
	}
	d, err := jsonwire.Compile(reflect.TypeFor[*[]int](), rules, tagRuler{}, jsonwire.Strictness{})
	if err != nil {
		t.Fatal(err)
	}
	var v *[]int
	if err := d.Decode([]byte(`[1,10,3]`), &v, strict); found(err) != "rule broken /1" {
		t.Error(err)
	}
	if err := d.Decode([]byte(`[1,9]`), &v, strict); err != nil || len(*v) != 2 {
		t.Error(v, err)
	}
	if _, err := jsonwire.Compile(reflect.TypeFor[string](), rules, nil, jsonwire.Strictness{}); err == nil {
		t.Error("rules for elements of a string")
	}
}

func TestInvalidRules(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"int": reflect.TypeFor[struct {
			N int `length:"1..2"`
		}](),
		"string": reflect.TypeFor[struct {
			S *string `int:"1..2"`
		}](),
		"elements": reflect.TypeFor[struct {
			S string `each:"int:\"1..2\""`
		}](),
		"element": reflect.TypeFor[struct {
			S []string `each:"int:\"1..2\""`
		}](),
		"default": reflect.TypeFor[struct {
			S string `default:"1"`
		}](),
		"by rule": reflect.TypeFor[struct {
			S string `default:"\"abc\"" length:"1..2"`
		}](),
		"syntax": reflect.TypeFor[struct {
			S string `default:"abc"`
		}](),
		"requires": reflect.TypeFor[struct {
			S string `requires:"T"`
		}](),
		"ruler": reflect.TypeFor[struct {
			S string `bad:"1"`
		}](),
		"inside": reflect.TypeFor[map[string][]struct {
			In struct {
				S string `int:"1..2"`
			}
		}](),
	} {
		_, err := jsonwire.Compile(typ, nil, tagRuler{}, jsonwire.Strictness{})
		if err == nil || !strings.Contains(err.Error(), "S") && !strings.Contains(err.Error(), "N") {
			t.Errorf("%s: got error %v, want it to name the field", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := strings.Repeat("[", 5) + strings.Repeat("]", 5)
	for _, c := range []struct {
		name, text string
		limits     jsonwire.Limits
		typ        reflect.Type
		want       string
	}{
		{"depth", nested, jsonwire.Limits{MaxDepth: 5}, reflect.TypeFor[any](), ""},
		{"too deep", nested, jsonwire.Limits{MaxDepth: 4}, reflect.TypeFor[any](), "too deep "},
		{"too deep, typed", nested, jsonwire.Limits{MaxDepth: 4}, reflect.TypeFor[chain](), "too deep "},
		{"too deep, skipped", `{"x":` + nested + `}`, jsonwire.Limits{MaxDepth: 4}, reflect.TypeFor[struct{}](), "too deep "},
		{"too deep for all", strings.Repeat("[", 10001) + strings.Repeat("]", 10001), jsonwire.Limits{MaxDepth: 20000}, reflect.TypeFor[any](), "too deep "},
		{"elements", `{"a":[1,2,3]}`, jsonwire.Limits{MaxElements: 4}, reflect.TypeFor[map[string][]int](), ""},
		{"too many elements", `{"a":[1,2,3]}`, jsonwire.Limits{MaxElements: 3}, reflect.TypeFor[map[string][]int](), "too many elements "},
		{"too many in any", `{"a":[1,2,3]}`, jsonwire.Limits{MaxElements: 3}, reflect.TypeFor[any](), "too many elements "},
		{"too many, skipped", `{"a":[1,2,3]}`, jsonwire.Limits{MaxElements: 3}, reflect.TypeFor[struct{}](), "too many elements "},
		{"too many members", `{"A":1,"B":2}`, jsonwire.Limits{MaxElements: 1}, reflect.TypeFor[small](), "too many elements "},
		{"enough members", `{"A":1,"B":2}`, jsonwire.Limits{MaxElements: 2}, reflect.TypeFor[small](), ""},
		{"number", "12.45", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[float64](), ""},
		{"long float", "12.456", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[float64](), "number too long "},
		{"long float32", "12.456", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[float32](), "number too long "},
		{"long integer", "123456", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[int](), "number too long "},
		{"long unsigned", "123456", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[uint8](), "number too long "},
		{"long in any", "[123456]", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[any](), "number too long "},
		{"long json.Number", "123456", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[json.Number](), "number too long "},
		{"long in raw JSON", "[123456]", jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[json.RawMessage](), "number too long "},
		{"long string", `"123456"`, jsonwire.Limits{MaxNumber: 5}, reflect.TypeFor[json.RawMessage](), ""},
		{"duplicate in any", `{"a":{"b":1,"b":2}}`, jsonwire.Limits{DuplicateMembers: true}, reflect.TypeFor[any](), "member twice /a/b"},
		{"duplicate in strings", `{"a":"1","a":"2"}`, jsonwire.Limits{DuplicateMembers: true}, reflect.TypeFor[map[string]string](), "member twice /a"},
		{"duplicate in another case", `{"A":1,"a":2}`, jsonwire.Limits{DuplicateMembers: true}, reflect.TypeFor[small](), "member twice /a"},
		{"duplicate of many", `{"A0":1,"AAAAAAAAAAAA2":true,"A0":2}`, jsonwire.Limits{DuplicateMembers: true}, reflect.TypeFor[many](), "member twice /A0"},
		{"UTF-8 in a name", "{\"\xff\":1}", jsonwire.Limits{InvalidUTF8: true}, reflect.TypeFor[map[string]int](), "invalid UTF-8 /\ufffd"},
		{"UTF-8 in raw JSON", `{"a":"\ud800"}`, jsonwire.Limits{InvalidUTF8: true}, reflect.TypeFor[json.RawMessage](), "invalid UTF-8 "},
		{"valid UTF-8", `{"a\\":"\ud83d\ude00 é \\ud800"}`, jsonwire.Limits{InvalidUTF8: true}, reflect.TypeFor[json.RawMessage](), ""},
		{"literal U+FFFD", `["\ufffd","` + "\ufffd" + `\n"]`, jsonwire.Limits{InvalidUTF8: true}, reflect.TypeFor[[]string](), ""},
	} {
		err := jsonwire.DecoderFor(c.typ).Decode([]byte(c.text), reflect.New(c.typ).Interface(), c.limits)
		if got := found(err); got != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%s: got %q (%v), want %q", c.name, got, err, c.want)
		}
	}
}

func TestWholeNumbers(t *testing.T) {
	d := jsonwire.DecoderFor(reflect.TypeFor[int64]())
	u := jsonwire.DecoderFor(reflect.TypeFor[uint64]())
	for text, want := range map[string]int64{
		"1.0": 1, "-1.0": -1, "1e2": 100, "1.5e1": 15, "150e-1": 15, "0e99999999999999999999": 0, "-0.0": 0, "0.00e-5": 0, "9223372036854775807.0": math.MaxInt64,
		"-9223372036854775808.000": math.MinInt64, "1000000000000000000000e-5": 1e16, "0.0001e4": 1, "1E+3": 1000,
	} {
		var got int64
		if err := d.Decode([]byte(text), &got, strict); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		var unsigned uint64
		if err := u.Decode([]byte(text), &unsigned, strict); (err == nil) != (want >= 0) || want >= 0 && unsigned != uint64(want) {
			t.Errorf("%s: got %d, %v, want %d", text, unsigned, err, want)
		}
	}
	for _, text := range []string{"1.5", "1e-1", "1e99999999999999999999", "1e-99999999999999999999", "9223372036854775808.0", "1e19", "0.1", "123e-4"} {
		var got int64
		if err := d.Decode([]byte(text), &got, strict); err == nil {
			t.Errorf("%s: got %d", text, got)
		}
	}
}

func TestRefusalDelimitsTheValue(t *testing.T) {
	d := jsonwire.DecoderFor(reflect.TypeFor[[]int]())
	var v []int
	for text, want := range map[string]jsonwire.Refusal{
		`[1, "x", "y"]`: {Kind: jsonwire.ProblemType, Pointer: "/1", Offset: 4, End: 7, Want: reflect.TypeFor[int]()},
		`[{"a":[]},2]`:  {Kind: jsonwire.ProblemType, Pointer: "/0", Offset: 1, End: 9, Want: reflect.TypeFor[int]()},
		`["x",]`:        {Kind: jsonwire.ProblemSyntax, Offset: 5, End: 5}, // although the string precedes it
	} {
		r, _ := errors.AsType[*jsonwire.Refusal](d.Decode([]byte(text), &v, jsonwire.Limits{}))
		if r == nil || *r != want {
			t.Errorf("%s: got %+v, want %+v", text, r, want)
		}
	}
}

// A refused text is explained without decoding it again, which would allocate an array here.
func TestRefusalAllocatesLittle(t *testing.T) {
	if invariants.Enabled {
		t.Skip("race builds allocate more")
	}
	d := jsonwire.DecoderFor(reflect.TypeFor[[]*[4096]int]())
	text := []byte("[[0],[0],[0],[\"x\"]]")
	v := []*[4096]int{new([4096]int), new([4096]int), new([4096]int), new([4096]int)}
	allocs(t, "refusal", 2, func() {
		if d.Decode(text, &v, jsonwire.Limits{}) == nil {
			t.Fatal("accepted")
		}
	})
}

func TestPointerLengthIsLimited(t *testing.T) {
	name := strings.Repeat("é", 300_000)
	for _, text := range []string{
		`{"` + name + `":[` + strings.Repeat(`"x",`, 200) + `1]}`,
		`{"ab\u0020` + name + `":["x"]}`,
		`{"` + strings.Repeat("~", 1000) + `":["x"]}`,
		strings.Repeat(`{"abc":`, 3000) + `["x"]` + strings.Repeat("}", 3000),
		"{\"" + strings.Repeat("\xff", 1030) + "\":[\"x\"]}",
	} {
		typ := reflect.TypeFor[map[string][]int]()
		if strings.HasPrefix(text, `{"abc":{`) {
			typ = reflect.TypeFor[deepMap]()
		}
		r, ok := errors.AsType[*jsonwire.Refusal](jsonwire.DecoderFor(typ).Decode([]byte(text), reflect.New(typ).Interface(), jsonwire.Limits{}))
		if !ok {
			t.Fatal("accepted")
		}
		if len(r.Pointer) > 1030 || !strings.Contains(r.Pointer, "…") || !utf8.ValidString(r.Pointer) {
			t.Fatalf("%s: got pointer of %d bytes: %q", short(text), len(r.Pointer), r.Pointer)
		}
	}
}

type deepMap map[string]deepMap

func TestRefusalWrapsMethodError(t *testing.T) {
	var v struct{ A []refuses }
	err := jsonwire.DecoderFor(reflect.TypeOf(v)).Decode([]byte(`{"A":[1]}`), &v, jsonwire.Limits{})
	if !errors.Is(err, errFailing) || found(err) != "unfit value /A/0" {
		t.Errorf("got %v", err)
	}
}
