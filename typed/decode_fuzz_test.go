package typed

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

type fuzzedSize string

func (fuzzedSize) Enum() []fuzzedSize { return []fuzzedSize{"s", "m"} }

type fuzzedBody struct {
	fuzzedPart
	Name  string               `json:"name" minLength:"1" maxLength:"4" pattern:"^[a-zé]*$"`
	Small int8                 `json:"small,omitempty" minimum:"-3" exclusiveMaximum:"100" multipleOf:"3"`
	Big   uint64               `json:"big,omitempty" maximum:"18446744073709551610"`
	Ratio float64              `json:"ratio,omitempty" exclusiveMinimum:"-1" maximum:"0.1" multipleOf:"0.01"`
	F32   float32              `json:"f32" maximum:"0.1" default:"0.05"`
	At    *time.Time           `json:"at,omitempty"`
	Inner []fuzzedBody         `json:"inner,omitempty" maxItems:"2" dependentRequired:"size"`
	Map   map[string]any       `json:"map,omitempty"`
	Bytes []byte               `json:"bytes,omitempty"`
	Opt   Optional[int16]      `json:"opt,omitzero" minimum:"2"`
	Null  Nullable[string]     `json:"null,omitzero" format:"uuid"`
	Size  fuzzedSize           `json:"size" default:"m"`
	Deep  map[string][]float32 `json:"deep,omitempty" additionalProperties.items.minimum:"0"`
	Raw   json.RawMessage      `json:"raw,omitempty"`
	Pair  [2]bool              `json:"pair,omitempty"`
}

type fuzzedPart struct {
	ID int `json:"id" maximum:"9"`
}

// If the first pass of the decoder accepts an input, the second pass accepts it with the same result.
func FuzzBodyDecoder(f *testing.F) {
	for _, s := range []string{
		`{"name":"a","id":1}`, `{"name":"é","id":1,"small":99,"ratio":0.07,"f32":0.1,"at":"2026-01-02T03:04:05Z","opt":2,"null":null}`,
		`{"name":"a","id":1,"inner":[{"name":"b","id":2}],"size":"s","map":{"a":[1e3,{"b":null}]},"bytes":"aGk=","deep":{"x":[1,2.5]}}`,
		`{"name":"a","id":1.0,"big":18446744073709551615}`, `{"name":"a","id":1,"null":"123e4567-e89b-12d3-a456-426614174000","raw": [1] ,"pair":[true,false]}`,
		`{"name":"a","id":1,"opt":null}`, `{"name":"a","id":null}`, `{"name":"a","id":1,"at":null}`, `{"name":"a","id":1,"map":null}`, `{"name":"\ud800","id":1}`,
		`{"name":"a","id":1,"name":"b"}`, `{"Name":"a","id":1}`, `{"name":"a","id":1,"pair":[true]}`, `{"name":"a","id":1,"map":{"a":1,"a":2}}`,
		`{"name":"a","id":1,"size":"x"}`, `{"name":"a","id":1,"ratio":0.30000000000000001}`, `{"name":"a","id":1,"bytes":"a\r\n=="}`,
	} {
		f.Add([]byte(s))
	}
	t := reflect.TypeFor[fuzzedBody]()
	node, err := schema.Of(t)
	if err != nil {
		f.Fatal(err)
	}
	fast, err := node.Decoder(t, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var first, second fuzzedBody
		took := fast.Try(body, &first, schema.DecoderLimits(20, false), nil)
		report := schema.Report{MaxElements: 20}
		plain := node.Check(body, "body", &report)
		if took && !report.OK() {
			t.Fatalf("accepted by the first pass, rejected by the second: got %s %s\n%s", report.List[0].Pointer, report.List[0].Text(), body)
		}
		if !report.OK() {
			return
		}
		if err := json.Unmarshal(plain, &second); err != nil {
			t.Fatalf("%v\n%s", err, plain)
		}
		if took && !reflect.DeepEqual(first, second) {
			t.Fatalf("%s\nfirst pass:  %+v\nsecond pass: %+v", body, first, second)
		}
	})
}
