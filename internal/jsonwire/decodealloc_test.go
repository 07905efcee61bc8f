package jsonwire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

type signUp struct {
	Name   string           `json:"name" required:"1" length:"1..80"`
	Mail   nullable[string] `json:"mail" pattern:"^[^@]+@[^@]+$" length:"3..80"`
	Age    int              `json:"age" int:"0..150" multiple:"2"`
	Score  float64          `json:"score" float:"0..100"`
	Admin  bool             `json:"admin" required:"1"`
	Invite *string          `json:"invite" length:"8..8"`
}

const signUpText = `{"name":"Ada Lovelace","mail":"ada@example.org","age":36,"score":99.5,"admin":true,"invite":null}`

func TestDecodeAllocations(t *testing.T) {
	one := func(d *jsonwire.Decoder, text string, v any, l jsonwire.Limits) func() {
		data := []byte(text)
		return func() {
			if err := d.Decode(data, v, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	type numbers struct {
		A    int
		B    float64
		C    bool
		D    uint8 `json:",string"`
		When time.Time
		Fix  [3]int
		Skip struct{}
		P    *int
	}
	plain := func(v any) *jsonwire.Decoder { return jsonwire.DecoderFor(reflect.TypeOf(v).Elem()) }
	var n numbers
	allocs(t, "numbers and times", 1, one(plain(&n), `{"A":1,"B":1.5e300,"C":true,"D":"7","When":"2026-01-31T15:04:05Z","Fix":[1,2,3,4],"Skip":{"x":["y"]},"P":null}`, &n, jsonwire.Limits{}))
	var s signUp
	allocs(t, "strings", 1, one(plain(&s), signUpText, &s, jsonwire.Limits{}))
	allocs(t, "strings with rules", 1, one(compile[signUp](t), signUpText, &s, strict))
	allocs(t, "strings with escapes", 1, one(plain(&s), `{"name":"Ada\nL\u00e9velace","mail":"é@\/"}`, &s, jsonwire.Limits{}))
	var known []user
	text, _ := json.Marshal(users(100))
	allocs(t, "into an existing slice", 1+strings4K(text), one(plain(&known), string(text), &known, jsonwire.Limits{}))
	broken := []byte(`{"name":"","mail":"x","age":-2,"score":1,"admin":true}`)
	d := compile[signUp](t)
	allocs(t, "refusal with a reason", 2, func() { _ = d.Decode(broken, &s, strict) })
	allocs(t, "refusal without a reason", 0, func() {
		if d.Try(broken, &s, strict, nil) {
			t.Error("accepted")
		}
	})
}

// Numbers and short strings of type any share allocations, and containers of type any are allocated in their final size.
func TestManyValuesOfAnyShareAllocations(t *testing.T) {
	const n = 10_000
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, `"%d":%d,`, i, i+1000)
	}
	for text, most := range map[string]int{ // bytes for each element
		"[" + strings.Repeat("1.5,", n) + "1]":     16 + 8 + 2,
		"[" + strings.Repeat(`"ab",`, n) + "1]":    16 + 16 + 2 + 4,
		"{" + members.String() + `"":1}`:           80 + 8 + 8,
		`{"a":{` + members.String() + `"":1}}`:     80 + 8 + 8,
		`{"a":[` + strings.Repeat("1,", n) + `1]}`: 16 + 8 + 2,
	} {
		for _, v := range []any{new(any), new(map[string]any)} {
			d, data := jsonwire.DecoderFor(reflect.TypeOf(v).Elem()), []byte(text)
			if _, whole := v.(*any); !whole && text[0] == '[' {
				continue
			}
			const runs = 5
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				reflect.ValueOf(v).Elem().SetZero()
				if !d.Try(data, v, jsonwire.Limits{}, nil) {
					t.Fatalf("%.20s into %T: refused", text, v)
				}
			}
			runtime.ReadMemStats(&after)
			count, bytes := (after.Mallocs-before.Mallocs)/runs, (after.TotalAlloc-before.TotalAlloc)/runs
			if count > n/8 || bytes > uint64(n*most) {
				t.Errorf("%.20s into %T: got %d allocations of %d bytes, want at most %d and %d", text, v, count, bytes, n/8, n*most)
			}
		}
	}
}

// strings4K returns the number of blocks that the strings of users need, without the first.
func strings4K(text []byte) float64 {
	var us []user
	_ = json.Unmarshal(text, &us)
	total := 0
	for _, u := range us {
		total += len(u.First_Name) + len(u.Last_Name) + len(u.Framework)
	}
	return float64(total / 4096)
}

// A retained string does not retain the memory of a large text.
func TestDecodedStringsDoNotRetainText(t *testing.T) {
	text := []byte(`["` + strings.Repeat(strings.Repeat("x", 500)+`","`, 4000) + `small"]`)
	d := jsonwire.DecoderFor(reflect.TypeFor[[]string]())
	var kept []string
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 8 {
		var all []string
		if err := d.Decode(text, &all, jsonwire.Limits{}); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, all[len(all)-1], all[0], all[2000])
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("%d small strings retain %d bytes", len(kept), grown)
	}
	runtime.KeepAlive(text)
	var empty string
	if err := jsonwire.DecoderFor(reflect.TypeFor[string]()).Decode([]byte(`""`), &empty, jsonwire.Limits{}); err != nil || unsafe.StringData(empty) != unsafe.StringData("") {
		t.Error("an empty string retains memory")
	}
}

type keeps struct{ json []byte }

func (k *keeps) UnmarshalJSON(b []byte) error { k.json = b; return nil }

type keepsText struct{ text []byte }

func (k *keepsText) UnmarshalText(b []byte) error { k.text = b; return nil }

// Methods that retain their input, although encoding/json forbids it, retain a copy.
func TestMethodsGetCopies(t *testing.T) {
	var v struct {
		J keeps
		T keepsText
		M map[string]keepsText
	}
	data := []byte(`{"J":[1, 2],"T":"text","M":{"k":"é\n"}}`)
	if err := jsonwire.DecoderFor(reflect.TypeOf(v)).Decode(data, &v, jsonwire.Limits{}); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if string(v.J.json) != "[1, 2]" || string(v.T.text) != "text" || string(v.M["k"].text) != "é\n" {
		t.Errorf("got %q %q %q", v.J.json, v.T.text, v.M["k"].text)
	}
	v.J.json = append(v.J.json, "overwritten"...)
	if string(v.T.text) != "text" {
		t.Errorf("appending to one value changed the other: got %q", v.T.text)
	}
}
