package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

type account struct {
	ID       *int64 `json:"id" readOnly:"true"`
	Role     string `json:"role" readOnly:"true" default:"user"`
	Name     string `json:"name"`
	Password string `json:"password,omitempty" writeOnly:"true"`
}

// Request schemas omit read-only members unless IgnoreReadOnly is set. Response schemas omit write-only members.
func TestDirectionsInDocument(t *testing.T) {
	type schemas map[string]struct {
		Properties map[string]map[string]any
		Required   []string
	}
	for _, ignore := range []bool{false, true} {
		app := dunlin.New(dunlin.Config{})
		typed.Configure(app, typed.Config{IgnoreReadOnly: ignore})
		typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body account }) (account, error) { return in.Body, nil })
		doc, err := openapi.Document(app, openapi.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Components struct{ Schemas schemas } }
		if err := json.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
		in, out := d.Components.Schemas["AccountInput"], d.Components.Schemas["Account"]
		if in.Properties["password"]["writeOnly"] != true || out.Properties["password"] != nil || out.Properties["id"]["readOnly"] != true {
			t.Errorf("ignored %v: got %s", ignore, doc)
		}
		if (in.Properties["id"] != nil) != ignore || strings.Join(in.Required, " ") != "name" || strings.Join(out.Required, " ") != "id role name" {
			t.Errorf("ignored %v: got %s", ignore, doc)
		}
	}
}
