package openapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// price encodes as an object, and point as an array.
type (
	price struct{ cents int64 }
	point [2]float64
)

func (p price) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int64{"cents": p.cents}) }
func (p *price) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &struct{ Cents *int64 }{&p.cents})
}
func (p point) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64(p)) }

func init() {
	typed.SchemaAs[price, struct {
		Cents int64 `json:"cents" minimum:"0"`
	}](`description:"An amount" example:"{\"cents\":5}"`)
	typed.SchemaAs[point, [2]float64](`items.minimum:"-180"`)
}

func TestSchemaAsInDocument(t *testing.T) {
	type stall struct {
		Price price                 `json:"price" description:"Of one"`
		Old   typed.Nullable[price] `json:"old,omitzero"`
		At    point                 `json:"at"`
	}
	app := quiet()
	op := typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body stall }) (stall, error) { return in.Body, nil })
	text, err := openapi.Document(app, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var doc bytes.Buffer
	if err := json.Compact(&doc, text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"Price":{"type":"object","properties":{"cents":{"type":"integer","format":"int64","minimum":0}},"required":["cents"],"description":"An amount","examples":[{"cents":5}]}`,
		`"PriceInput":{"type":"object","properties":{"cents":{"type":"integer","format":"int64","minimum":0}},"required":["cents"],"additionalProperties":false,"description":"An amount","examples":[{"cents":5}]}`,
		`"price":{"$ref":"#/components/schemas/Price","description":"Of one"}`,
		`"old":{"anyOf":[{"$ref":"#/components/schemas/PriceInput"},{"type":"null"}]}`,
		`"at":{"type":"array","items":{"type":"number","format":"double","minimum":-180},"minItems":2,"maxItems":2}`,
	} {
		if !strings.Contains(doc.String(), want) {
			t.Errorf("got a document without %s\n%s", want, doc.String())
		}
	}
	in := struct{ Body stall }{stall{Price: price{7}}}
	if x := op.Test(t, app, in); x.Status != 200 || x.Out.Price.cents != 7 {
		t.Errorf("answered %d %s", x.Status, x.Body)
	}
}
