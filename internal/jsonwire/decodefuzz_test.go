package jsonwire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// FuzzDecode compares with encoding/json the decoding of arbitrary text into one of many types: the error and the value. It
// then decodes the same text in two members of an object, where the second one merges with the value of the first.
func FuzzDecode(f *testing.F) {
	for i, text := range oddTexts {
		if len(text) < 200 {
			f.Add([]byte(text), uint8(i))
		}
	}
	f.Add([]byte(`{"i":-12,"s":"a\n","f64":1.5e3,"sls":[{"A":1},{"b":2}],"m":{"k":"v"},"ma":{"x":[1,null]},"ps":{"i":1,"Q":1},"any":{"y":"\ud83d"},"qi":"5","X":1,"W":2}`), uint8(0))
	f.Add([]byte(` { "Time" : "2026-01-31T15:04:05Z" , "Bytes":"AQI=" , "ArS":[{"A":1},{},{}],"MP":{"a":{"A":1},"a":null},"U64":18446744073709551615}`), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		typ := decodeTypes[int(which)%len(decodeTypes)]
		text := string(data)
		if onV2 && (typ.Kind() == reflect.Struct || strings.Contains(text, `\u003`) || differsOnV2(typ, "")) {
			return // the tables cover the differences
		}
		sameDecoded(t, typ, text)
		if json.Valid(data) && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
			pair := reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ}})
			sameDecoded(t, pair, `{"F":`+text+`,"f":`+text+`}`)
		}
		if err := jsonwire.DecoderFor(typ).Decode(data, reflect.New(typ).Interface(), strict); err != nil {
			found(err)
			return
		}
		// A text that is accepted with strict limits is also accepted with looser ones.
		if err := jsonwire.DecoderFor(typ).Decode(data, reflect.New(typ).Interface(), jsonwire.Limits{FractionlessFloat: true}); err != nil {
			t.Errorf("%s into %v: accepted with strict limits, refused with looser ones: %v", short(text), typ, err)
		}
	})
}
