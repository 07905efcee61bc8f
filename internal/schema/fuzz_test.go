package schema_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

type fuzzed struct {
	Name  string            `json:"name" maxLength:"8"`
	Small int8              `json:"small,omitempty"`
	Big   uint64            `json:"big,omitempty" multipleOf:"3"`
	Ratio float32           `json:"ratio,omitempty" exclusiveMinimum:"-1"`
	At    *time.Time        `json:"at,omitempty"`
	Inner []fuzzed          `json:"inner,omitempty" uniqueItems:"true"`
	Map   map[int8]any      `json:"map,omitempty"`
	Text  map[string][]byte `json:"text,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	Quote uint16            `json:"quote,omitempty,string"`
	Def   int               `json:"def" default:"7"`
	Num   json.Number       `json:"num,omitempty"`
}

// Accepted inputs can be decoded and get their defaults. Inputs that encoding/json cannot decode are refused.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"name":"a"}`, `{"name":"a","small":1e2,"big":-0,"ratio":0.5}`, `{"name":"\u00e9","inner":[{"name":"b"},{"name":"\u0062"}]}`,
		`{"name":"a","map":{"-1":[null],"2":{"x":1e400}}}`, `{"name":"a","text":{"k":"aGk="},"raw":[1, 2],"quote":"12","def":8}`,
		`{"name":"a","at":"2026-01-02T03:04:05Z"} `, `[`, `nul`, `{"name":"a","num":1.50}`, `{"name":"a","big":3.0e0}`, `{"name":"a","small":-0.0}`,
		`{"name":"a","big":1e999999999999}`, `{"name":"a","big":-0e0,"ratio":1e-999}`,
	} {
		f.Add([]byte(s))
	}
	node, err := schema.Of(reflect.TypeFor[fuzzed]())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		var report schema.Report
		plain := node.Check(body, "body", &report)
		if !bytes.Equal(body, before) {
			t.Fatal("Check changed the body")
		}
		for i := range report.List {
			v := &report.List[i]
			if !json.Valid(v.AppendJSON(nil)) || v.Text() == "is invalid" {
				t.Fatalf("%+v: got %s", v, v.AppendJSON(nil))
			}
		}
		if !report.OK() {
			return
		}
		var v fuzzed
		d := json.NewDecoder(bytes.NewReader(plain))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("Check accepts a body that cannot be decoded: %v\n%s\n%s", err, body, plain)
		}
		if !bytes.Contains(body, []byte("def")) && !bytes.Contains(body, []byte(`\u`)) && v.Def != 7 {
			t.Fatalf("got default %d", v.Def)
		}
	})
}
