package openapi_test

import (
	"encoding/json"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// Optional credentials are a choice between a scheme and no scheme (OpenAPI 3.1, section 4.8.30).
func TestOptionalCredentials(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	optional := typed.Requires(typed.BearerAuth("token", "JWT")).Or(typed.Requirement{})
	typed.Get(app, "/feed", func(*dunlin.Request, struct{}) (string, error) { return "", nil }).Security(optional)
	text, err := openapi.Document(app, openapi.Config{Title: "feed", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	security := doc.Paths["/feed"]["get"].Security
	if len(security) != 2 || security[0]["token"] == nil || len(security[1]) != 0 {
		t.Errorf("security: got %v", security)
	}
}
