package pages

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

type Webhook struct {
	_    struct{} `additionalProperties:"true"`
	Kind string   `json:"kind"`
}

// Money has JSON of its own.
type Money struct {
	amount   int64
	currency string
}

func (m *Money) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &struct {
		Amount   *int64
		Currency *string
	}{&m.amount, &m.currency})
}

func init() {
	typed.SchemaAs[netip.Addr, string](`format:"ipv4" example:"192.0.2.1"`)
	typed.SchemaAs[Money, struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency" enum:"EUR,USD"`
	}](``)
}

var (
	NoArticle    = typed.NewFault(404, "no-article", "There is no such article")
	NotTheAuthor = typed.NewFault(403, "not-the-author", "Only the author may do this")
)

type slug struct {
	Slug string `path:"slug"`
}

func show(*dunlin.Request, slug) (typed.None, error)   { return typed.None{}, NoArticle }
func remove(*dunlin.Request, slug) (typed.None, error) { return typed.None{}, NotTheAuthor }

func TestTypedMore(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	typed.Post(app, "/hooks", func(_ *dunlin.Request, in struct{ Body Webhook }) (string, error) { return in.Body.Kind, nil })
	var kind string
	if status := dunlintest.JSON(t, app, "POST", "/hooks", map[string]any{"kind": "sold", "more": []int{1}}, &kind); status != http.StatusOK || kind != "sold" {
		t.Errorf("an unknown member is answered %d %s", status, kind)
	}

	typed.Post(app, "/payments", func(_ *dunlin.Request, in struct {
		Body struct {
			Price Money      `json:"price"`
			From  netip.Addr `json:"from"`
		}
	}) (int64, error) {
		return in.Body.Price.amount, nil
	})
	for currency, status := range map[string]int{"EUR": http.StatusOK, "XYZ": http.StatusBadRequest} {
		body := map[string]any{"price": map[string]any{"amount": 5, "currency": currency}, "from": "192.0.2.7"}
		if got := dunlintest.JSON(t, app, "POST", "/payments", body, nil); got != status {
			t.Errorf("%s is answered %d", currency, got)
		}
	}

	signedIn := func(next dunlin.Action) dunlin.Action { return next }
	articles := typed.NewGroup(app.Group("/articles", signedIn)).Tags("articles").Faults(NoArticle)
	typed.Get(articles, "/{slug}", show).Name("showArticle")
	typed.Delete(articles, "/{slug}", remove).Name("deleteArticle").Faults(NotTheAuthor)

	for name, status := range map[string]int{"showArticle": http.StatusNotFound, "deleteArticle": http.StatusForbidden} {
		op := typed.Find[slug, typed.None](app, name)
		if x := op.Test(t, app, slug{"a"}); x.Status != status || strings.Join(op.Describe().Tags, " ") != "articles" {
			t.Errorf("%s is answered %d %s", name, x.Status, x.Body)
		}
	}
	if _, err := openapi.Document(app, openapi.Config{}); err != nil {
		t.Error(err)
	}
}
