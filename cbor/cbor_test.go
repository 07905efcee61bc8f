package cbor_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	fx "github.com/fxamacker/cbor/v2"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/cbor"
	"github.com/dunlinhttp/dunlin/negotiate"
	"github.com/dunlinhttp/dunlin/typed"
)

type note struct {
	ID   int       `json:"id"`
	Tags []string  `json:"tags"`
	At   time.Time `json:"at"`
}

func newApp() *dunlin.App {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	typed.Configure(app, typed.Config{
		Formats:   []*negotiate.Format{cbor.CBOR},
		Transcode: map[string]func(dst, body []byte) ([]byte, error){"application/cbor": cbor.ToJSON},
	})
	type in struct{ Body note }
	typed.Post(app, "/notes", func(_ *dunlin.Request, in in) (note, error) { return in.Body, nil })
	return app
}

func post(app *dunlin.App, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/notes", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/cbor")
	r.Header.Set("Accept", "application/cbor")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func Example() {
	app := newApp()
	body, err := fx.Marshal(map[string]any{"id": 7, "tags": []string{"a"}, "at": "2026-11-24T00:00:00Z"})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := post(app, body)
	var got map[string]any
	err = fx.Unmarshal(w.Body.Bytes(), &got)
	fmt.Println(w.Header().Get("Content-Type"), got, err)
	// Output: application/cbor map[at:2026-11-24T00:00:00Z id:7 tags:[a]] <nil>
}

func TestAppend(t *testing.T) {
	got, err := cbor.CBOR.Append([]byte("x"), note{ID: 1, At: time.Unix(0, 0).UTC()})
	want := "78" + "a3" + "626964" + "01" + "6474616773" + "80" + "626174" + "74" + hex.EncodeToString([]byte("1970-01-01T00:00:00Z"))
	if err != nil || hex.EncodeToString(got) != want {
		t.Errorf("%v: got %x, want %s", err, got, want)
	}
	hidden := struct {
		Password string `json:"-"`
	}{"hush"}
	if got, err := cbor.CBOR.Append(nil, hidden); err != nil || string(got) != "\xa0" {
		t.Errorf("%v: got %x", err, got)
	}
	if _, err := cbor.CBOR.Append(nil, func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func TestToJSON(t *testing.T) {
	for in, want := range map[string]string{
		"a26161016162820203":                 `{"a":1,"b":[2,3]}`,
		"44deadbeef":                         `"3q2+7w=="`,
		"fb3ff199999999999a":                 `1.1`,
		"f6":                                 `null`,
		"1bffffffffffffffff":                 `18446744073709551615`,
		"bf61610161629f0203ffff":             `{"a":1,"b":[2,3]}`,
		"":                                   "",
		"a1":                                 "",
		"a2616101616102":                     "", // duplicate name
		"a10102":                             "", // name other than text
		"c11a514b67b0":                       "", // tag
		"61ff":                               "", // invalid UTF-8
		"f97e00":                             "", // NaN
		"9bffffffffffffffff":                 "", // length without elements
		"0101":                               "", // two items
		strings.Repeat("81", 10_000) + "f6":  "", // nested too deeply
		strings.Repeat("81", 31) + "f6":      strings.Repeat("[", 31) + "null" + strings.Repeat("]", 31),
		"5f42010243030405ff":                 `"AQIDBAU="`,
		"7f657374726561646d696e67ff":         `"streaming"`,
		"83016261620c":                       `[1,"ab",12]`,
		"a1616180":                           `{"a":[]}`,
		"f5":                                 `true`,
		"3863":                               `-100`,
		"3bffffffffffffffff":                 `-18446744073709551616`,
		"a1" + "63" + "e282ac" + "6141":      `{"€":"A"}`,
		"a1" + "6161" + "a1" + "6162" + "01": `{"a":{"b":1}}`,
	} {
		body, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cbor.ToJSON([]byte("x"), body)
		if (err != nil) != (want == "") || string(got) != "x"+want {
			t.Errorf("%.40s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestBodiesAreChecked(t *testing.T) {
	app := newApp()
	body, err := fx.Marshal(map[string]any{"id": "seven"})
	if err != nil {
		t.Fatal(err)
	}
	if w := post(app, body); w.Code != 400 || !strings.Contains(w.Body.String(), "#/id") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := post(app, []byte{0xa1}); w.Code != http.StatusBadRequest {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// decoding is the reference implementation of ToJSON: it decodes by fxamacker/cbor, and json.Marshal encodes the values.
var decoding, _ = fx.DecOptions{
	DefaultMapType: reflect.TypeFor[map[string]any](),
	DupMapKey:      fx.DupMapKeyEnforcedAPF,
	BigIntDec:      fx.BigIntDecodePointer,
	TagsMd:         fx.TagsForbidden,
}.DecMode()

func FuzzToJSON(f *testing.F) {
	for _, seed := range []string{
		"a26161016162820203", "44deadbeef", "fb3ff199999999999a", "1bffffffffffffffff", "3bffffffffffffffff", "bf61610161629f0203ffff", "9bffffffffffffffff",
		"5f42010243030405ff", "7f657374726561646d696e67ff", "f90001", "f9fc00", "f93c00", "fa47c35000", "f7", "fb3eb0c6f7a0b5ed8d", "8b0102030405060708090a8101",
	} {
		b, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := cbor.ToJSON(nil, body)
		var v, same, twins any
		if twin := decoding.Unmarshal(body, &v); err != nil {
			want, failed := json.Marshal(v)
			if twin == nil && failed == nil && !bytes.ContainsAny(body, "\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb\xec\xed\xee\xef\xf0\xf1\xf2\xf3\xf8") {
				t.Fatalf("%x: got a refusal: %v; want %s", body, err, want)
			}
			return
		} else if twin != nil {
			t.Fatalf("%x becomes %s; the twin refuses it: got %v", body, got, twin)
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%x: got %s; error of the reference implementation: %v", body, got, err)
		}
		if err := json.Unmarshal(got, &same); err != nil {
			t.Fatalf("%x becomes %s: %v", body, got, err)
		}
		if err := json.Unmarshal(want, &twins); err != nil || !reflect.DeepEqual(twins, same) {
			t.Fatalf("%x: got %s, want %s (%v)", body, got, want, err)
		}
	})
}

// A data item with many small items uses only the memory of its JSON.
func TestToJSONMakesNoValues(t *testing.T) {
	const n = 100_000
	body := append([]byte{0x9f}, bytes.Repeat([]byte{0xa0}, n)...)
	body = append(body, 0xff)
	dst := make([]byte, 0, 4*n)
	if got := testing.AllocsPerRun(5, func() {
		if b, err := cbor.ToJSON(dst, body); err != nil || len(b) != 3*n+1 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}); got > 2 {
		t.Errorf("%v allocations", got)
	}
}
