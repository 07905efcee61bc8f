package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type oracleSize string

func (oracleSize) Enum() []oracleSize { return []oracleSize{"s", "m"} }

// oracleBody has a member for every rule of a schema.
type oracleBody struct {
	Name  string                 `json:"name" minLength:"1" maxLength:"4" pattern:"^[a-zé\"]*$"`
	Small int8                   `json:"small,omitempty" minimum:"-3" exclusiveMaximum:"100" multipleOf:"3"`
	Big   uint64                 `json:"big,omitempty" maximum:"18446744073709551610"`
	Ratio float64                `json:"ratio,omitempty" exclusiveMinimum:"-1" maximum:"0.1" multipleOf:"0.01"`
	At    *time.Time             `json:"at,omitempty"`
	Inner []oracleBody           `json:"inner,omitempty" maxItems:"2" uniqueItems:"true" dependentRequired:"size"`
	Map   map[string]uint8       `json:"map,omitempty" maxProperties:"2" propertyNames.maxLength:"2" additionalProperties.multipleOf:"5"`
	Keys  map[int16]bool         `json:"keys,omitempty"`
	Opt   typed.Optional[int32]  `json:"opt,omitzero" minimum:"2"`
	Null  typed.Nullable[string] `json:"null,omitzero" format:"uuid"`
	Size  oracleSize             `json:"size" default:"m"`
	Deep  map[string][]float32   `json:"deep,omitempty" additionalProperties.items.minimum:"0" additionalProperties.minItems:"1"`
	Pair  [2]bool                `json:"pair,omitempty"`
	Quote int64                  `json:"quote,omitempty,string"`
	Any   any                    `json:"any,omitempty"`
	Level int                    `json:"level,omitempty" enum:"1,2,3"`
}

// oracle returns an app that takes such bodies, and the schema of its document as another's
// implementation of JSON Schema understands it.
func oracle(t testing.TB) (*dunlin.App, *jsonschema.Schema) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	typed.Post(app, "/", func(*dunlin.Request, struct{ Body oracleBody }) (typed.None, error) { return typed.None{}, nil })
	text, err := openapi.Document(app, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for _, bits := range []string{"8", "16", "32", "64"} {
		integer := "int" + bits
		c.RegisterFormat(&jsonschema.Format{Name: integer, Validate: func(v any) error { return fitsInteger(v, bits, false) }})
		c.RegisterFormat(&jsonschema.Format{Name: "u" + integer, Validate: func(v any) error { return fitsInteger(v, bits, true) }})
	}
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#/components/schemas/OracleBody")
	if err != nil {
		t.Fatal(err)
	}
	return app, s
}

// fitsInteger applies the definitions of integer formats in OpenAPI's registry.
func fitsInteger(v any, bits string, unsigned bool) error {
	n, ok := v.(json.Number)
	if text, isText := v.(string); isText {
		n, ok = json.Number(text), true
	}
	if !ok {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return errors.New("no integer")
	}
	size := map[string]int{"8": 8, "16": 16, "32": 32, "64": 64}[bits]
	if unsigned && r.Num().Sign() >= 0 && r.Num().BitLen() <= size {
		return nil
	}
	least := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), uint(size-1)))
	if !unsigned && (r.Num().BitLen() < size || r.Num().Cmp(least) == 0) {
		return nil
	}
	return errors.New("too large")
}

// values lists valid and invalid values by the name of the member. Those of "" are for any member.
var values = map[string][]string{
	"":      {`null`, `true`, `"x"`, `1`, `-1.5`, `[]`, `{}`, `[1,"a",null]`, `{"a":{"b":[]}}`, `""`, `0`, `1e2`},
	"name":  {`"a"`, `"abcd"`, `"é\u00e9éé"`, `"abcde"`, `"😀"`, `"\"a"`, `"A"`},
	"small": {`0`, `3`, `99`, `100`, `-3`, `-6`, `1`, `99.0`, `9.9e1`, `0.3e1`, `128`, `-0`, `-0.0`, `1e400`},
	"big":   {`0`, `18446744073709551610`, `18446744073709551611`, `18446744073709551616`, `-1`, `1.0`, `12e3`},
	"ratio": {`0.07`, `0.1`, `0.10`, `0.11`, `-0.99`, `-1`, `1e-2`, `0.015`, `-5e-1`, `0.100000000000001`},
	"at":    {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.678+01:30"`, `"2026-13-02T03:04:05Z"`, `"2026-01-02"`, `"2026-02-30T00:00:00Z"`},
	"inner": {`[@]`, `[@,@]`, `[@,@,@]`, `[{}]`, `[null]`},
	"map":   {`{"a":5}`, `{"a":5,"b":10}`, `{"a":0,"b":5,"c":5}`, `{"abc":5}`, `{"a":6}`, `{"éé":255}`, `{"a":260}`},
	"keys":  {`{"1":true}`, `{"-32768":false}`, `{"32768":true}`, `{"x":true}`, `{"1":null}`, `{"01":true}`},
	"opt":   {`2`, `1`, `2147483647`, `2147483648`},
	"null":  {`"123e4567-e89b-12d3-a456-426614174000"`, `"123E4567-e89b-12d3-a456-426614174000"`, `"123e4567"`},
	"size":  {`"s"`, `"m"`, `"\u0073"`, `"l"`, `"S"`},
	"deep":  {`{"a":[0]}`, `{"a":[]}`, `{"a":[1,-1]}`, `{"a":null}`, `{"":[0.5]}`},
	"pair":  {`[true,false]`, `[true]`, `[true,false,true]`, `[1,2]`},
	"quote": {`"12"`, `"-9223372036854775808"`, `"9223372036854775808"`, `"1.0"`, `12`, `"012"`, `""`},
	"any":   {`{"a":[1,2,{"b":null}]}`, `1e300`},
	"level": {`1`, `3.0`, `4`, `"1"`},
}

// randomBody makes a body of mostly right members.
func randomBody(r *rand.Rand, depth int) string {
	var b strings.Builder
	names := []string{"name", "size", "small", "big", "ratio", "at", "inner", "map", "keys", "opt", "null", "deep", "pair", "quote", "any", "level", "Name", "other"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	n := 0
	for _, name := range names {
		chance := 0.2
		switch name {
		case "name":
			chance = 0.95
		case "Name", "other":
			chance = 0.02
		}
		if r.Float64() > chance {
			continue
		}
		list := values[name]
		if len(list) == 0 || r.Float64() < 0.05 {
			list = values[""]
		}
		value := list[r.IntN(len(list))]
		for strings.Contains(value, "@") {
			inner := `{"name":"a"}`
			if depth < 3 {
				inner = randomBody(r, depth+1)
			}
			value = strings.Replace(value, "@", inner, 1)
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.WriteString(` "` + name + `" : ` + value)
	}
	return "{" + b.String() + "}"
}

// differ reports a body that one accepts and the other does not.
func differ(t *testing.T, app *dunlin.App, s *jsonschema.Schema, body string) (accepted bool) {
	t.Helper()
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = s.Validate(v)
	}
	if (w.Code == 204) != (err == nil) || w.Code != 204 && w.Code != 400 {
		t.Errorf("%s\ngot %d %s, error of the schema: %v", body, w.Code, w.Body, err)
	}
	return w.Code == 204
}

// Dunlin accepts exactly the bodies that the schema of its document accepts.
func TestSchemaOracle(t *testing.T) {
	app, s := oracle(t)
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 20_000 {
		if differ(t, app, s, randomBody(r, 0)) {
			accepted++
		}
		if t.Failed() {
			return
		}
	}
	if accepted < 1000 {
		t.Errorf("got only %d accepted bodies: the test checks too little", accepted)
	}
}

// FuzzSchemaOracle is the same for fuzzed bodies, except for cases outside JSON Schema: repeated names, half surrogate pairs,
// and numbers beyond float64.
func FuzzSchemaOracle(f *testing.F) {
	app, s := oracle(f)
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		f.Add(randomBody(r, 0))
	}
	f.Fuzz(func(t *testing.T, body string) {
		if !utf8.ValidString(body) || strings.Contains(body, `\u`) || strings.ContainsAny(body, "eE") && strings.ContainsAny(body, "0123456789") || repeats(body) {
			return
		}
		differ(t, app, s, body)
	})
}

// repeats reports whether some object has a name twice.
func repeats(body string) bool {
	d := json.NewDecoder(strings.NewReader(body))
	var open []map[string]bool // nil for arrays
	name := false
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		top := len(open) - 1
		switch token {
		case json.Delim('{'):
			open, name = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open = append(open, nil)
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			name = top > 0 && open[top-1] != nil
			continue
		}
		if top < 0 || open[top] == nil {
			continue
		}
		if text, ok := token.(string); ok && name {
			if open[top][text] {
				return true
			}
			open[top][text] = true
		}
		name = !name
	}
}
