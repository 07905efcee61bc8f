package jsonwire_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

func ptr[T any](v T) *T { return &v }

func TestScalars(t *testing.T) {
	check(t, "true", true)
	check(t, "false", false)
	for _, i := range []int64{0, 1, 9, 10, 42, 99, 100, 101, 999, 1000, 9999, 10000, 12345, 99999,
		100000, 1234567, 9999999, 10000000, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64, -1, -10, -128} {
		check(t, "int64", i)
		check(t, "int", int(i))
		check(t, "int32", int32(i))
		check(t, "int16", int16(i))
		check(t, "int8", int8(i))
		check(t, "uint64", uint64(i))
		check(t, "uint", uint(i))
		check(t, "uint32", uint32(i))
		check(t, "uint16", uint16(i))
		check(t, "uint8", uint8(i))
		check(t, "uintptr", uintptr(i))
	}
	for u := uint64(1); u != 0 && u < 1<<63; u *= 10 {
		one(t, "power of ten", []uint64{u - 1, u, u + 1, -u, math.MaxUint64})
	}
	check(t, "named int", time.Second)
	check(t, "named bool", struct {
		B interface{ String() string }
	}{time.March})
}

func TestFloats(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1.5, 1e-6, 9.9e-7, 1e-7, 1e-9, 1e-10, 1e-100,
		1e20, 1e21, 1e22, 123456789012345680, 1 << 24, 1<<24 + 1, 1 << 53, 1.7976931348623157e308, 5e-324,
		math.Pi, -2.5e-8, 3.4028234663852886e38, 1.401298464324817e-45, 100, 1e15, 123456.789,
		math.NaN(), math.Inf(1), math.Inf(-1)} {
		check(t, "float64", f)
		check(t, "float32", float32(f))
	}
}

func TestStrings(t *testing.T) {
	for _, s := range []string{"", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghi",
		"0123456789abcdef", "0123456789abcdefg", `"`, `\`, `"quoted"`, "<script>alert('&')</script>",
		"\x00\x01\x1f\x20\x7f", "\b\f\n\r\t", "é", "日本語", "\u2028\u2029", "a\u2028b", "😀", "\xff", "a\xc3", "\xe2\x80",
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "12345678\x80", "1234567\xe2\x80\xa8", "\ufffd", strings.Repeat("x", 1000) + "\n",
		"null", "~/", "x\x80\x80\x80y"} {
		check(t, "string", s)
		check(t, "named string", named{s})
		check(t, "map key", map[string]int{s: 1, s + "x": 2})
	}
	for c := range 256 {
		for n := range 18 { // every byte at every position in and around two words
			s := strings.Repeat("a", n) + string([]byte{byte(c)}) + strings.Repeat("b", 17-n)
			one(t, "one unusual byte", s)
			one(t, "at the end", s[:n+1])
		}
	}
}

func TestNumber(t *testing.T) {
	for _, s := range []string{"", "0", "-0", "1", "-1.5", "1e5", "1E+5", "1.5e-3", "01", "1.", ".5", "-", "+1", "1e", "1e+",
		"0x10", "NaN", "1 ", " 1", "1.e5", "--1", "1e5.", "12345678901234567890", "1.0e05"} {
		check(t, "json.Number "+s, json.Number(s))
	}
}

func TestBytesAndArrays(t *testing.T) {
	type octet byte
	check(t, "bytes", []byte("any carnal pleas\xff"))
	check(t, "no bytes", []byte{})
	check(t, "nil bytes", []byte(nil))
	check(t, "named byte", []octet{1, 2})
	check(t, "byte with a method", []byteText{1, 2})
	check(t, "byte array", [3]byte{1, 2, 3})
	check(t, "nil slice", []int(nil))
	check(t, "empty slice", []int{})
	check(t, "empty array", [0]int{})
	check(t, "zero array", [2]int{})
	check(t, "zero-sized elements", []struct{}{{}, {}})
	check(t, "matrix", [][]int{{1, 2}, nil, {}})
	check(t, "array of floats", [2]float64{math.Copysign(0, -1)})
}

func TestPointersAndInterfaces(t *testing.T) {
	check(t, "pointers", ptr(ptr(ptr(7))))
	check(t, "nil pointer", (*int)(nil))
	check(t, "pointer to nil", ptr((*int)(nil)))
	check(t, "nil any", any(nil))
	check(t, "pointer to any", ptr(any(3)))
	check(t, "nil error", error(nil))
	check(t, "error", errors.New("x"))
	check(t, "interface with methods", stringer(named{"n"}))
	check(t, "interface holding a pointer", stringer(&named{"n"}))
	check(t, "interface holding nil", stringer((*named)(nil)))
	check(t, "interface in an interface", any(stringer(named{"n"})))
	check(t, "direct interface: map", any(map[string]int{"a": 1}))
	check(t, "direct interface: struct", struct{ P *int }{ptr(1)})
	check(t, "direct interface: nil in a struct", struct{ P *int }{})
	check(t, "direct interface: array", [1]*int{ptr(1)})
	check(t, "direct interface: nested", struct{ A [1]struct{ P map[string]int } }{})
	check(t, "pointer after an empty field", struct {
		_ struct{}
		P *int
	}{P: ptr(1)})
	check(t, "one word, no pointer", struct{ N uintptr }{7})
}

func TestMaps(t *testing.T) {
	check(t, "map", map[string]int{"b": 1, "a": 2, "": 3, "\xff": 4, "<": 5})
	check(t, "nil map", map[string]int(nil))
	check(t, "empty map", map[string]int{})
	check(t, "int keys", map[int]string{-1: "a", 10: "b", 9: "c"})
	check(t, "int8 keys", map[int8]bool{-128: true, 127: false})
	check(t, "uint keys", map[uint64]string{math.MaxUint64: "a", 0: "b"})
	check(t, "uintptr keys", map[uintptr]int{1: 1})
	check(t, "string kind with a method", map[stringText]int{"a": 1})
	check(t, "int kind with a method", map[intText]int{3: 1, 1: 2})
	check(t, "struct keys", map[structKey]int{{1, 2}: 1, {1, 1}: 2})
	check(t, "pointer keys", map[*pointerKey]int{{A: 2}: 1, {A: 1}: 2})
	check(t, "interface keys", map[encoding.TextMarshaler]int{structKey{}: 1})
	check(t, "direct interface keys", map[directArray]int{{ptr(3)}: 1})
	check(t, "pointer receiver not reached", map[pointerKey]int{{A: 2}: 1})
	check(t, "bool keys", map[bool]int{true: 1})
	if !onV2 { // v2 supports them
		check(t, "float keys", map[float64]int{})
	}
	check(t, "values with pointer methods", map[string]pointerJSON{"a": {"x"}})
	check(t, "values of any", map[string]any{"n": nil, "f": 1.5, "s": "x", "l": []any{1.0, "a", true, nil}})
	check(t, "maps in maps", map[string]map[string]map[int]bool{"a": {"b": {1: true}, "c": nil}, "d": {}})
	large := map[string]int{}
	for i := range 5000 {
		large[strings.Repeat("k", i%7)+string(rune('a'+i%26))+time.Duration(i).String()] = i
	}
	check(t, "large map", large)
}

func TestMethods(t *testing.T) {
	check(t, "MarshalJSON by value", valueJSON{"<&>\u2028"})
	check(t, "MarshalJSON by pointer", pointerJSON{"x"})
	check(t, "MarshalText by value", valueText{"<&>\u2028\xff"})
	check(t, "MarshalText by pointer", pointerText{"x"})
	check(t, "both", bothValue{})
	check(t, "one by value, one by pointer", mixed{})
	check(t, "on a string", stringJSON("x"))
	check(t, "text of a string", stringText("x"))
	check(t, "text of an int", intText(2))
	check(t, "on a slice", sliceJSON{1})
	check(t, "on a nil slice", sliceJSON(nil))
	check(t, "on a map", mapJSON{"a": 1})
	check(t, "on a nil map", mapJSON(nil))
	check(t, "on a func", funcJSON(func() string { return "f" }))
	check(t, "on a direct interface type", directJSON{ptr(5)})
	check(t, "on a nil direct interface type", directJSON{})
	check(t, "text of a direct interface array", directArray{ptr(5)})
	check(t, "promoted", embedsMarshal{valueJSON{"x"}, 1})
	check(t, "nil pointer with a method", (*nilJSON)(nil))
	check(t, "pointer with a method", &nilJSON{})
	check(t, "nil pointer to a value method", (*valueJSON)(nil))
	check(t, "nil pointer to a text method", (*valueText)(nil))
	check(t, "interface of marshalers", json.Marshaler(valueJSON{"x"}))
	check(t, "nil interface of marshalers", json.Marshaler(nil))
	check(t, "interface of text marshalers", encoding.TextMarshaler(valueText{"x"}))
	check(t, "nil interface of text marshalers", encoding.TextMarshaler(nil))
	check(t, "RawMessage", json.RawMessage(" { \"a<\" : [ 1 , \"\u2028 \" ] } "))
	check(t, "RawMessage with a line separator only", json.RawMessage("\"\u2029\""))
	check(t, "nil RawMessage", json.RawMessage(nil))
	for _, s := range []string{"", " ", "{", "1 2", `{"a":}`, "nul", "[1,]", "\"\x01\"", `"a\q"`, "01"} {
		check(t, "invalid JSON from a method", invalid(s))
		check(t, "invalid RawMessage", json.RawMessage(s))
	}
	check(t, "failing", failing{})
	check(t, "failing text", failingText{})
}

func TestTime(t *testing.T) {
	check(t, "zero time", time.Time{})
	check(t, "UTC", time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC))
	check(t, "trimmed fraction", time.Date(2024, 2, 29, 23, 59, 59, 120000000, time.UTC))
	check(t, "zone", time.Date(2024, 2, 29, 0, 0, 0, 0, time.FixedZone("x", -(3*3600+30*60))))
	check(t, "seconds in the zone", time.Date(2024, 2, 29, 0, 0, 0, 0, time.FixedZone("x", 3601)))
	check(t, "zone too far", time.Date(2024, 2, 29, 0, 0, 0, 0, time.FixedZone("x", 24*3600)))
	check(t, "zone too far west", time.Date(2024, 2, 29, 0, 0, 0, 0, time.FixedZone("x", -100*3600)))
	check(t, "year 9999", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
	check(t, "year 10000", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	check(t, "year -1", time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))
	check(t, "nil time", (*time.Time)(nil))
	check(t, "embedded time", embedsTime{time.Unix(0, 0).UTC()})
	type local time.Time
	check(t, "named time", local(time.Unix(0, 0)))
}

func TestStructs(t *testing.T) {
	check(t, "empty", struct{}{})
	check(t, "unexported fields only", struct{ a, b int }{1, 2})
	check(t, "embedding", embedding{inner: inner{1, 2, 3}, deep: &deep{Inner{4, 5}}, B: "b"})
	check(t, "embedding nil", embedding{})
	check(t, "tag beats depth", struct {
		tagged
		Inner
	}{tagged{1}, Inner{2, 3}})
	check(t, "equal names are omitted", twins{Dup1{1}, Dup2{2}})
	check(t, "a tag wins over equal names", broken{Dup1{1}, Dup2{2}, OnlyTag{3}})
	// The type is made at run time because go vet reports it in source code.
	check(t, "equal names in two tags", reflect.Zero(reflect.StructOf([]reflect.StructField{
		{Name: "Named1", Type: reflect.TypeFor[Named1](), Anonymous: true},
		{Name: "Named2", Type: reflect.TypeFor[Named2](), Anonymous: true},
		{Name: "Other", Type: reflect.TypeFor[int]()},
	})).Interface())
	check(t, "diamond", diamond{Left{Base{Deepest{1}, 2}}, &Right{Base{Deepest{3}, 4}}})
	check(t, "embedded types other than structs", nonStruct{text: "t", Text: "T", Inner: &Inner{1, 2}})
	check(t, "embedded pointer to itself", loop{&loop{nil, 1}, 2})
	check(t, "tags", tags{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "s", "t"})
	check(t, "blank", struct{ _, A int }{A: 1})
	check(t, "IsZero by value", zeroValue{42})
	check(t, "IsZero by value, zero", zeroValue{})
	check(t, "IsZero by pointer", zeroPointer{42})
	check(t, "IsZero by pointer, zero", zeroPointer{})
	check(t, "IsZero in an interface", interface{ IsZero() bool }(zeroValue{42}))
	check(t, "IsZero in an interface, no", interface{ IsZero() bool }(zeroValue{}))
	check(t, "IsZero in an interface, nil", interface{ IsZero() bool }(nil))
	check(t, "IsZero in an interface, nil pointer", interface{ IsZero() bool }((*zeroPointer)(nil)))
	check(t, "unexported fields that are not zero", struct{ a int }{1})
	check(t, "unexported embedded with a name", struct {
		inner `json:"in"`
	}{inner{1, 2, 3}})
	check(t, "methods behind an embedded pointer", struct{ *hasMethods }{&hasMethods{pointerJSON{"x"}, pointerText{"y"}}})
}

type hasMethods struct {
	J pointerJSON
	T pointerText
}

func TestUnsupported(t *testing.T) {
	check(t, "chan", make(chan int))
	check(t, "nil chan", (chan int)(nil))
	check(t, "func", func() {})
	check(t, "complex", complex(1, 2))
	check(t, "complex64", complex64(0))
	check(t, "empty slice of chan", []chan int{})
	check(t, "map of funcs", map[string]func(){"f": nil})
}

func TestRecursion(t *testing.T) {
	check(t, "tree", tree{1, []*tree{{Value: 2}, nil}, map[string]tree{"x": {Value: 3}}})
	check(t, "list", list{&list{&list{}}})
	check(t, "chain", chain{nil, {}, {{}, nil}})
	check(t, "map of itself", ringMap{"a": {"b": nil}, "c": {}})
	check(t, "mutual", pingA{&pingB{[]pingA{{}, {&pingB{}}}}})

	deepList := &list{}
	for range 3000 {
		deepList = &list{deepList}
	}
	one(t, "deep but finite", deepList)
	shared := &list{}
	one(t, "shared pointer without a cycle", []*list{shared, shared})

	// The same values at a depth where the encoder detects cycles.
	var deepShared any = []any{shared, shared, map[string]any{"a": shared}, []*list{shared}}
	for range 1100 {
		deepShared = []any{deepShared}
	}
	one(t, "shared and deep", deepShared)
}

func TestCycles(t *testing.T) {
	l := &list{}
	l.Next = l
	one(t, "pointer", l)
	c := chain{nil}
	c[0] = c
	one(t, "slice", c)
	m := ringMap{}
	m["m"] = m
	one(t, "map", m)
	a := []any{nil}
	a[0] = a
	one(t, "slice of any", a)
	ma := map[string]any{}
	ma["x"] = []any{&ma}
	one(t, "through several values", ma)
	b := pingA{&pingB{make([]pingA, 1)}}
	b.B.A[0] = b
	one(t, "through two types", b)
}

func TestPointerCycle(t *testing.T) {
	// This is not compared: encoding/json of Go 1.27 overflows the stack.
	var e endless
	e = &e
	_, err := jsonwire.Append(nil, &e, jsonwire.Options{})
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		t.Errorf("got error %v, want an *json.UnsupportedValueError", err)
	}
}
