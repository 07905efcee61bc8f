package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

type hue string

func (hue) Enum() []hue { return []hue{"red", "blue"} }

type point struct {
	X, Y int
}

func (p *point) UnmarshalText(b []byte) error {
	if len(b) != 2 {
		return errors.New("not two bytes")
	}
	p.X, p.Y = int(b[0]), int(b[1])
	return nil
}

func (p point) MarshalText() ([]byte, error) { return []byte{byte(p.X), byte(p.Y)}, nil }

type box[T any] struct {
	value     T
	set, null bool
}

func (box[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Nullable: true}
}

func (box[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "value", Set: "set", Null: "null", AcceptNull: true}
}

func (b *box[T]) UnmarshalJSON(text []byte) error {
	if b.null = string(text) == "null"; b.null {
		b.value, b.set = *new(T), false
		return nil
	}
	b.set = true
	return json.Unmarshal(text, &b.value)
}

type read struct {
	Name  string            `json:"name" minLength:"2" maxLength:"8" pattern:"^[^z]*$"`
	Small int8              `json:"small,omitempty" minimum:"-5" multipleOf:"2"`
	Big   *uint64           `json:"big,omitempty" maximum:"18446744073709551614"`
	Ratio float32           `json:"ratio,omitempty" exclusiveMinimum:"-1"`
	Third float32           `json:"third,omitempty" minimum:"0.1"`
	Exact float64           `json:"exact,omitempty" multipleOf:"0.1"`
	Range float64           `json:"range,omitempty" minimum:"-0.3" exclusiveMaximum:"9007199254740993"`
	At    time.Time         `json:"at,omitempty"`
	Inner []read            `json:"inner,omitempty" maxItems:"2" dependentRequired:"hue"`
	Sets  [][]int8          `json:"sets,omitempty" uniqueItems:"true"`
	Fixed [2]*bool          `json:"fixed,omitempty"`
	Tags  []string          `json:"tags,omitempty" items.minLength:"1" items.format:"email"`
	Text  map[string][]byte `json:"text,omitempty" minProperties:"1"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	Any   any               `json:"any,omitempty"`
	Quote *uint16           `json:"quote,omitempty,string"`
	Def   *read             `json:"def,omitempty" default:"null"`
	Count int               `json:"count" default:"7"`
	Num   json.Number       `json:"num,omitempty" minimum:"1"`
	Hue   hue               `json:"hue,omitempty"`
	Hues  map[string]hue    `json:"hues,omitempty" maxProperties:"1"`
	Point *point            `json:"point,omitempty"`
	Maybe box[[]int8]       `json:"maybe,omitempty" minItems:"1" items.maximum:"9"`
}

// Check accepts all inputs that a decoder accepts, with the same result.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{
		`{"name":"ab"}`, `{"name":"ab","small":1e0,"big":-0,"ratio":0.5,"exact":0.3}`, `{"name":"\u00e9\u0062","inner":[{"name":"bb"},{"name":"\u0062b"}],"hue":"red"}`,
		`{"name":"ab","text":{"k":"aGk="},"raw":[1, 2],"quote":"12","count":8,"tags":["a@b.de"]}`, `{"name":"ab","text":{"k":[1]}}`, `{"name":"ab","num":"12"}`,
		`{"name":"ab","at":"2026-01-02T03:04:05Z","num":1.5,"hue":"green"}`, `{"name":"ab","hues":{"x":"blue"},"point":"xy","maybe":[1]}`, `{"name":"ab","maybe":null,"big":null,"def":null}`,
		`{"name":"ab","quote":"012"}`, `{"name":"ab","any":{"a":1,"a":2}}`, `{"name":"ab","fixed":[true,null]}`, `{"name":"ab","fixed":[true]}`, `{"name":"ab","small":-6.0}`, `{"name":"ab","third":0.0999999999}`, `{"name":"ab","range":-0.30000000000000000001}`, `{"name":"ab","range":9007199254740992.5}`, `{"name":"ab","maybe":[10]}`,
	} {
		f.Add([]byte(s))
	}
	typ := reflect.TypeFor[read]()
	node, err := schema.Of(typ)
	if err != nil {
		f.Fatal(err)
	}
	d, err := node.Decoder(typ, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var v, want read
		taken := d.Try(body, &v, schema.DecoderLimits(20, false), nil)
		report := schema.Report{MaxElements: 20}
		plain := node.Check(body, "body", &report)
		if !taken {
			return // Check reports the reason, or accepts the input
		}
		if !report.OK() {
			t.Fatalf("the decoder accepts %s, but Check reports %v", body, report.List)
		}
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatalf("the decoder accepts %s, but encoding/json returns %v", body, err)
		}
		if !reflect.DeepEqual(v, want) {
			t.Fatalf("%s: got\n%+v\nwant\n%+v", body, v, want)
		}
	})
}

// A decoder exists for ordinary types, and accepts ordinary bodies.
func TestDecoderOfOrdinaryTypes(t *testing.T) {
	typ := reflect.TypeFor[read]()
	node, err := schema.Of(typ)
	if err != nil {
		t.Fatal(err)
	}
	d, err := node.Decoder(typ, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"name":"ab"}`, `{"name":"abc","small":2,"big":18446744073709551614,"ratio":0.5,"exact":0.3,"at":"2026-01-02T03:04:05Z","hue":"red",
			"inner":[{"name":"bb"}],"fixed":[true,null],"tags":["a@b.de"],"text":{"k":"aGk="},"raw":[1],"any":[null],"quote":"12","num":1.5,"hues":{"a":"red"},"point":"xy","maybe":[1]}`,
		`{"name":"ab","small":1e1,"big":null,"maybe":null}`,
		`{"name":"ab","range":-0.3}`, `{"name":"ab","range":9007199254740992}`,
	} {
		var v read
		if !d.Try([]byte(body), &v, schema.DecoderLimits(0, false), nil) {
			t.Errorf("%s: got a refusal", body)
		}
	}
	for _, other := range []any{map[int]string{}, []uint8Text{}, struct{ M map[point]int }{}} {
		typ := reflect.TypeOf(other)
		node, err := schema.Of(typ)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.Decoder(typ, false); err == nil {
			t.Errorf("%v: got a decoder, but its rules can only be checked on texts", typ)
		}
	}
}

type uint8Text uint8

func (u uint8Text) MarshalText() ([]byte, error) { return []byte{byte(u)}, nil }
func (u *uint8Text) UnmarshalText([]byte) error  { return nil }
