package typed_test

import (
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// account has read-only and write-only members.
type account struct {
	ID       *int64                   `json:"id" readOnly:"true"`
	Role     string                   `json:"role" readOnly:"true" default:"user"`
	Name     string                   `json:"name"`
	Password string                   `json:"password,omitempty" writeOnly:"true"`
	Friend   typed.Nullable[*account] `json:"friend,omitzero"`
	Deputy   *account                 `json:"deputy,omitempty"`
	Any      any                      `json:"any,omitempty"`
}

// keyed cannot be decoded in one pass.
type keyed struct {
	account
	ByNumber map[int]account `json:"byNumber,omitempty"`
}

func accounts(c typed.Config) *dunlin.App {
	app := dunlin.New(dunlin.Config{})
	typed.Configure(app, c)
	type one struct{ Body account }
	typed.Post(app, "/one", func(_ *dunlin.Request, in one) (account, error) { return in.Body, nil })
	type other struct{ Body keyed }
	typed.Post(app, "/keyed", func(_ *dunlin.Request, in other) (keyed, error) { return in.Body, nil })
	return app
}

func TestReadOnlyMembersAreRefused(t *testing.T) {
	app := accounts(typed.Config{})
	for _, path := range []string{"/one", "/keyed"} {
		for body, want := range map[string]string{
			`{"id":1,"name":"a"}`:                           "body #/id readOnly",
			`{"id":null,"name":"a"}`:                        "body #/id readOnly",
			`{"id":{"x":[1]},"role":"admin"}`:               "body #/id readOnly, body #/role readOnly, body #/name required",
			`{"name":"a","friend":{"role":"x","name":"b"}}`: "body #/friend/role readOnly",
		} {
			expectViolations(t, post(t, app, path, body), strings.Split(want, ", ")...)
		}
		a := post(t, app, path, `{"name":"a","password":"secret"}`)
		if a.status != http.StatusOK || strings.TrimSpace(a.body) != `{"id":null,"role":"user","name":"a"}` {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
}

func TestReadOnlyMembersAreIgnored(t *testing.T) {
	app := accounts(typed.Config{IgnoreReadOnly: true})
	for _, path := range []string{"/one", "/keyed"} {
		for body, want := range map[string]string{
			`{"id":1,"role":"admin","name":"a"}`:                                        `{"id":null,"role":"user","name":"a"}`,
			`{"role":[{}],"id":"x","name":"a","deputy":{"id":2,"name":"b","role":"x"}}`: `{"id":null,"role":"user","name":"a","deputy":{"id":null,"role":"user","name":"b"}}`,
			`{"name":"a"}`: `{"id":null,"role":"user","name":"a"}`,
		} {
			if a := post(t, app, path, body); a.status != http.StatusOK || a.body != want {
				t.Errorf("%s %s: got %d %s", path, body, a.status, a.body)
			}
		}
		expectViolations(t, post(t, app, path, `{"id":1,"id":2,"name":"a","role":"\ud800"}`), "body #/id duplicate", "body #/role utf8")
	}
}

// No kind of response contains write-only members.
func TestWriteOnlyMembersAreOmitted(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	id := int64(1)
	inner := account{Name: "in", Password: "secret"}
	full := account{ID: &id, Name: "a", Password: "secret", Friend: typed.NullableOf(&inner), Deputy: &inner, Any: map[string]any{"x": []account{inner}}}
	typed.Get(app, "/value", func(*dunlin.Request, struct{}) (account, error) { return full, nil })
	typed.Get(app, "/list", func(*dunlin.Request, struct{}) ([]account, error) { return []account{full}, nil })
	typed.Get(app, "/map", func(*dunlin.Request, struct{}) (map[string]account, error) { return map[string]account{"k": full}, nil })
	typed.Get(app, "/created", func(*dunlin.Request, struct{}) (typed.Created[account], error) {
		return typed.Created[account]{Body: full}, nil
	})
	typed.Get(app, "/either", func(*dunlin.Request, struct{}) (typed.Either[account, typed.None], error) {
		return typed.First[account, typed.None](full), nil
	})
	type page struct {
		Total int `header:"X-Total"`
		Body  []account
	}
	typed.Get(app, "/page", func(*dunlin.Request, struct{}) (page, error) { return page{1, []account{full}}, nil })
	each := func(yield func(account, error) bool) { yield(full, nil) }
	typed.Get(app, "/seq", func(*dunlin.Request, struct{}) (typed.Seq[account], error) { return each, nil })
	typed.Get(app, "/seq2", func(*dunlin.Request, struct{}) (iter.Seq2[account, error], error) { return each, nil })
	typed.Get(app, "/lines", func(*dunlin.Request, struct{}) (typed.Lines[account], error) { return each, nil })
	typed.Get(app, "/events", func(*dunlin.Request, struct{}) (typed.EventsOf[account], error) {
		return func(e *typed.Emitter[account]) error { return e.Emit(full) }, nil
	})
	app.Get("/plain", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(full, dunlin.JSONOmitWriteOnly) })
	for _, path := range []string{"/value", "/list", "/map", "/created", "/either", "/page", "/seq", "/seq2", "/lines", "/events", "/plain"} {
		a := ask(t, app, "GET "+path)
		if a.status >= 300 || strings.Contains(a.body, "secret") || strings.Contains(a.body, "password") || strings.Count(a.body, `"in"`) != 3 {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
}

// A client omits read-only members and sends write-only members.
func TestClientsOmitReadOnlyMembers(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	type one struct{ Body account }
	id := int64(1)
	op := typed.Post(app, "/one", func(_ *dunlin.Request, in one) (account, error) {
		if in.Body.ID != nil || in.Body.Password != "secret" {
			t.Errorf("got request body %+v", in.Body)
		}
		in.Body.ID = &id
		return in.Body, nil
	})
	got := op.Test(t, app, one{account{ID: &id, Role: "admin", Name: "a", Password: "secret"}})
	if got.Status != http.StatusOK || got.Out.Role != "user" || *got.Out.ID != 1 || got.Out.Password != "" {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

func TestInvalidDirectionTags(t *testing.T) {
	for name, register := range map[string]func(*dunlin.App){
		"a parameter": func(app *dunlin.App) {
			typed.Get(app, "/", func(*dunlin.Request, struct {
				ID int `query:"id" readOnly:"true"`
			}) (typed.None, error) {
				return typed.None{}, nil
			})
		},
		"a body": func(app *dunlin.App) {
			typed.Post(app, "/", func(*dunlin.Request, struct {
				Body account `writeOnly:"true"`
			}) (typed.None, error) {
				return typed.None{}, nil
			})
		},
		"elements": func(app *dunlin.App) {
			typed.Post(app, "/", func(*dunlin.Request, struct {
				Body struct {
					List []string `items.readOnly:"true"`
				}
			}) (typed.None, error) {
				return typed.None{}, nil
			})
		},
		"an embedded struct": func(app *dunlin.App) {
			typed.Post(app, "/", func(*dunlin.Request, struct {
				Body struct {
					account `readOnly:"true"`
				}
			}) (typed.None, error) {
				return typed.None{}, nil
			})
		},
		"both": func(app *dunlin.App) {
			typed.Post(app, "/", func(*dunlin.Request, struct {
				Body struct {
					ID int `readOnly:"true" writeOnly:"true"`
				}
			}) (typed.None, error) {
				return typed.None{}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(v.(string), "readOnly") && !strings.Contains(v.(string), "writeOnly") {
					t.Errorf("got %v", v)
				}
			}()
			register(dunlin.New(dunlin.Config{}))
		})
	}
}
