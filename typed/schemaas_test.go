package typed_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

// money has custom JSON, code has custom text, and both has both.
type (
	money struct{ cents int64 }
	code  string
	both  struct{ text string }
	tree  struct{ kids []tree }

	moneyJSON struct {
		Cents    int64  `json:"cents" minimum:"0"`
		Currency string `json:"currency" enum:"EUR,USD" default:"EUR"`
	}
)

func (m money) MarshalJSON() ([]byte, error) { return json.Marshal(moneyJSON{m.cents, "EUR"}) }
func (m *money) UnmarshalJSON(b []byte) error {
	var v moneyJSON
	err := json.Unmarshal(b, &v)
	if v.Cents == 13 {
		err = errors.New("unlucky")
	}
	m.cents = v.Cents
	return err
}

func (c code) MarshalText() ([]byte, error) { return []byte("c-" + c), nil }
func (c *code) UnmarshalText(b []byte) error {
	after, ok := strings.CutPrefix(string(b), "c-")
	*c = code(after)
	if !ok {
		return errors.New("no code")
	}
	return nil
}

func (b both) MarshalJSON() ([]byte, error)     { return json.Marshal(b.text) }
func (b *both) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &b.text) }
func (b both) MarshalText() ([]byte, error)     { return []byte(b.text), nil }
func (b *both) UnmarshalText(text []byte) error { b.text = string(text); return nil }

func (t tree) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"kids": append([]tree{}, t.kids...)})
}
func (t *tree) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &struct{ Kids *[]tree }{&t.kids})
}

func init() {
	typed.SchemaAs[money, moneyJSON](`description:"An amount"`)
	typed.SchemaAs[code, string](`maxLength:"5" example:"c-1"`)
	typed.SchemaAs[both, string](`minLength:"2"`)
	typed.SchemaAs[tree, struct {
		Kids []tree `json:"kids" maxItems:"2"`
	}](``)
}

type described struct {
	Code  typed.Optional[code] `query:"code"`
	Both  typed.Optional[both] `query:"both" maxLength:"3"`
	Boths []both               `query:"boths"`
	Body  struct {
		Price money                 `json:"price" example:"{\"cents\":5,\"currency\":\"USD\"}"`
		Old   typed.Nullable[money] `json:"old,omitzero"`
		Code  code                  `json:"code,omitempty"`
		Both  both                  `json:"both,omitzero" format:"date" example:"2026-01-02"`
		Tree  *tree                 `json:"tree,omitempty"`
		Keys  map[code]money        `json:"keys,omitempty"`
	}
}

func TestSchemaAs(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		typed.Post(app, "/", func(_ *dunlin.Request, in described) (money, error) { return in.Body.Price, nil })
		addr := dunlintest.Serve(t, app)
		for _, c := range []struct{ query, body, want string }{ // "" for 200
			{"", `{"price":{"cents":5}}`, ""},
			{"?code=c-1&both=ab&boths=ab", `{"price":{"cents":5,"currency":"USD"},"old":null,"code":"c-2","both":"2026-01-02","tree":{"kids":[{"kids":[]}]},"keys":{"c-1":{"cents":1}}}`, ""},
			{"", `{"price":{"cents":-1}}`, "body #/price/cents minimum 0"},
			{"", `{"price":{"cents":13}}`, "body #/price type money"},
			{"", `{"price":null,"old":{"cents":1.5}}`, "body #/price type object; body #/old/cents type integer"},
			{"", `{"price":{"cents":1,"currency":"XYZ","more":1}}`, `body #/price/currency enum "EUR", "USD"; body #/price/more additionalProperties`},
			{"", `{"price":"5"}`, "body #/price type object"},
			{"", `{"price":{"cents":5},"code":"c-12345"}`, "body #/code maxLength 5"},
			{"", `{"price":{"cents":5},"code":"1"}`, "body #/code type code"},
			{"", `{"price":{"cents":5},"both":"x"}`, "body #/both minLength 2; body #/both format date"},
			{"", `{"price":{"cents":5},"both":7}`, "body #/both type string"},
			{"", `{"price":{"cents":5},"tree":{"kids":[{"kids":[{},{},{}]}]}}`,
				"body #/tree/kids/0/kids/0/kids required; body #/tree/kids/0/kids/1/kids required; body #/tree/kids/0/kids/2/kids required; body #/tree/kids/0/kids maxItems 2"},
			{"", `{"price":{"cents":5},"keys":{"c-12345":{"cents":1}}}`, "body #/keys/c-12345 maxLength 5"},
			{"?code=c-12345&both=abcd&boths=x", `{"price":{"cents":5}}`, "query code maxLength 5; query both maxLength 3; query boths #/0 minLength 2"},
		} {
			a := sent(t, "POST", "http://"+addr+"/"+c.query, c.body, "Content-Type: application/json")
			switch {
			case c.want != "":
				expectViolations(t, a, strings.Split(c.want, "; ")...)
			case a.status != http.StatusOK:
				t.Errorf("%s: got %d %s", c.body, a.status, a.body)
			}
		}
	})
}

// deepReads counts the bytes that UnmarshalJSON of deep has read.
var deepReads int

type deep struct{ next *deep }

func (d *deep) UnmarshalJSON(text []byte) error {
	deepReads += len(text)
	return json.Unmarshal(text, &struct{ Next **deep }{&d.next})
}

func init() {
	typed.SchemaAs[deep, struct {
		Next *deep `json:"next,omitempty"`
	}](``)
}

// A deeply nested value is decoded once, even if its parts have descriptions, too.
func TestSchemaAsDeepValues(t *testing.T) {
	app := quiet()
	sink[struct{ Body deep }](app, "POST", "/")
	const depth = 200
	body := strings.Repeat(`{"next":`, depth) + "{}" + strings.Repeat("}", depth)
	deepReads = 0
	if a := post(t, app, "/", body); a.status != http.StatusNoContent {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	once := 0
	for n := len(body); n > 0; n -= len(`{"next":}`) {
		once += n
	}
	if deepReads > 3*once {
		t.Errorf("got %d bytes read, want at most 3 times the %d bytes of one pass", deepReads, once)
	}
}

func TestInvalidSchemaAs(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{panics(func() { typed.SchemaAs[money, string](``) }), "it has a description already"},
		{panics(func() { typed.SchemaAs[moneyJSON, string](``) }), "its JSON is known"},
		{panics(func() { typed.SchemaAs[*cents, string](``) }), "other than a pointer"},
		{panics(func() { typed.SchemaAs[other, int](``) }), "is written by MarshalText as a string"},
		{panics(func() { typed.SchemaAs[other, string](`minimum:"1"`) }), "minimum does not apply to a string"},
		{panics(func() { typed.SchemaAs[other, string](`example:"1"`) }), ""},
		{try[struct {
			Body struct {
				At money `format:"date"`
			}
		}]("POST", "/"), "format does not apply to an object"},
		{try[struct {
			Body struct {
				At written `json:"at" format:"date"`
			}
		}]("POST", "/"), `format:"date": the rule applies to strings, but typed_test.written is written as 0: describe its JSON with typed.SchemaAs`},
		{try[struct {
			Body struct {
				At money `json:"at" example:"7"`
			}
		}]("POST", "/"), `example:"7": the value # must be an object`},
		{try[struct {
			Body struct {
				At cents `json:"at" items.minimum:"1"`
			}
		}]("POST", "/"), `items. does not apply to typed_test.cents`},
	} {
		if !strings.Contains(c.got, c.want) || c.want == "" && c.got != "" {
			t.Errorf("got %q\nwant %q", c.got, c.want)
		}
	}
	// Describing a type that an operation already uses is too late.
	sink[struct {
		Body struct{ At written }
	}](quiet(), "POST", "/")
	if got := panics(func() { typed.SchemaAs[written, int](``) }); !strings.Contains(got, "registered already") {
		t.Errorf("got %q", got)
	}
}

// written has custom JSON that is a number, and other has custom text.
type (
	written struct{}
	other   struct{ code }
)

func (written) MarshalJSON() ([]byte, error)  { return []byte("0"), nil }
func (*written) UnmarshalJSON(b []byte) error { return nil }
