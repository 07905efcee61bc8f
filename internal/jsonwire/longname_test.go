package jsonwire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// A name that is longer than that of every member is not decoded and costs no memory. A member's own name may consist of escapes.
func TestLongNames(t *testing.T) {
	type pair struct {
		Kelvin int `json:"kelvin"`
	}
	d := jsonwire.DecoderFor(reflect.TypeFor[pair]())
	escaped := func(name string) (text string) {
		for i := range len(name) {
			text += `\u00` + string("0123456789abcdef"[name[i]>>4]) + string("0123456789abcdef"[name[i]&15])
		}
		return text
	}
	for text, want := range map[string]pair{
		`{"` + escaped("kelvin") + `":1}`:                 {Kelvin: 1},
		`{"\u212a` + escaped("ELVIN") + `":1}`:            {Kelvin: 1},
		`{"` + escaped("kelvin1") + `":1,"kelvin":2}`:     {Kelvin: 2},
		`{"` + strings.Repeat(`\n`, 40) + `":1}`:          {},
		`{"` + strings.Repeat("é", 40) + `\ud800":1}`:     {},
		`{"` + strings.Repeat(`\ud83d\ude00`, 9) + `":1}`: {},
	} {
		var got pair
		if err := d.Decode([]byte(text), &got, jsonwire.Limits{}); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]jsonwire.ProblemKind{
		`{"` + strings.Repeat(`\n`, 40) + `\ud800":1}`:       jsonwire.ProblemUTF8,
		`{"` + strings.Repeat("a", 40) + "\xff\":1}":         jsonwire.ProblemUTF8,
		`{"` + strings.Repeat(`\n`, 40) + `\ud83d\ude00":1}`: jsonwire.ProblemUnknown,
		`{"` + strings.Repeat(`\n`, 40) + `\ud83d\u0020":1}`: jsonwire.ProblemUTF8,
		`{"` + strings.Repeat(`\n`, 40) + `\`:                jsonwire.ProblemSyntax,
		`{"` + strings.Repeat(`\n`, 40) + `\u12`:             jsonwire.ProblemSyntax,
		`{"` + strings.Repeat(`\n`, 40) + `\u12g4":1}`:       jsonwire.ProblemSyntax,
	} {
		var got pair
		err := d.Decode([]byte(text), &got, jsonwire.Limits{InvalidUTF8: true, UnknownMembers: true})
		var r *jsonwire.Refusal
		if !errors.As(err, &r) || r.Kind != want {
			t.Errorf("%s: got error %v, want kind %v", text, err, want)
		}
	}
	long := []byte(`{"` + strings.Repeat(`\n\u0061`, 10_000) + `":1,"KELVIN":3}`)
	var got pair
	allocs(t, "a long name", 0, func() {
		if err := d.Decode(long, &got, jsonwire.Limits{}); err != nil || got.Kelvin != 3 {
			t.Fatal(got, err)
		}
	})
}
