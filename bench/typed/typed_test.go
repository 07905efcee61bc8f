package typed_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
	"github.com/go-fuego/fuego"
)

// User is the body of the POST: six fields, and the same rules for each framework.
type User struct {
	Name  string   `json:"name" minLength:"1" maxLength:"80" validate:"required,min=1,max=80"`
	Mail  string   `json:"mail" format:"email" validate:"required,email"`
	Age   int      `json:"age" minimum:"0" maximum:"150" validate:"gte=0,lte=150"`
	Score float64  `json:"score" minimum:"0" validate:"gte=0"`
	Admin bool     `json:"admin"`
	Tags  []string `json:"tags" maxItems:"10" validate:"max=10"`
}

// Kept is User with rules of Dunlin, which refuses those of other libraries.
type Kept struct {
	Name  string   `json:"name" minLength:"1" maxLength:"80"`
	Mail  string   `json:"mail" format:"email"`
	Age   int      `json:"age" minimum:"0" maximum:"150"`
	Score float64  `json:"score" minimum:"0"`
	Admin bool     `json:"admin"`
	Tags  []string `json:"tags" maxItems:"10"`
}

// Listed is the answer of the GET.
type Listed struct {
	ID    int    `json:"id"`
	Limit int    `json:"limit"`
	Sort  string `json:"sort"`
}

const userJSON = `{"name":"Ada Lovelace","mail":"ada@example.com","age":36,"score":4.5,"admin":true,"tags":["first","second"]}`

func dunlinHandler() http.Handler {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	typed.Get(app, "/users/{id:int}", func(_ *dunlin.Request, in struct {
		ID    int    `path:"id"`
		Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
		Sort  string `query:"sort" default:"name"`
	}) (Listed, error) {
		return Listed(in), nil
	})
	typed.Post(app, "/users", func(_ *dunlin.Request, in struct{ Body Kept }) (Kept, error) { return in.Body, nil })
	return app
}

func humaHandler() http.Handler {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("bench", "1"))
	type list struct {
		ID    int    `path:"id"`
		Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
		Sort  string `query:"sort" default:"name"`
	}
	type listed struct{ Body Listed }
	huma.Get(api, "/users/{id}", func(_ context.Context, in *list) (*listed, error) {
		return &listed{Listed(*in)}, nil
	})
	type create struct{ Body User }
	huma.Register(api, huma.Operation{Method: "POST", Path: "/users", DefaultStatus: 200}, func(_ context.Context, in *create) (*create, error) { return in, nil })
	return mux
}

func fuegoHandler() http.Handler {
	s := fuego.NewServer(fuego.WithoutLogger(), fuego.WithoutStartupMessages(), fuego.WithEngineOptions(fuego.WithOpenAPIConfig(fuego.OpenAPIConfig{DisableLocalSave: true, Disabled: true})))
	fuego.Get(s, "/users/{id}", func(c fuego.ContextNoBody) (Listed, error) {
		id, err := c.PathParamIntErr("id")
		if err != nil {
			return Listed{}, err
		}
		limit, err := c.QueryParamIntErr("limit")
		if err != nil || limit < 1 || limit > 100 {
			return Listed{}, fuego.BadRequestError{Err: err}
		}
		return Listed{id, limit, c.QueryParam("sort")}, nil
	})
	fuego.Post(s, "/users", func(c fuego.ContextWithBody[User]) (User, error) { return c.Body() })
	return s.Mux
}

// bare is a ResponseWriter that keeps only the status.
type bare struct {
	header http.Header
	status int
}

func (w *bare) Header() http.Header         { return w.header }
func (w *bare) Write(b []byte) (int, error) { return len(b), nil }
func (w *bare) WriteHeader(status int)      { w.status = status }

// BenchmarkTyped has each framework answer the same two requests, on net/http's types and
// without a network.
func BenchmarkTyped(b *testing.B) {
	for _, peer := range []struct {
		name    string
		handler http.Handler
	}{{"dunlin", dunlinHandler()}, {"huma", humaHandler()}, {"fuego", fuegoHandler()}} {
		for _, c := range []struct{ name, method, target, body string }{
			{"get", "GET", "/users/17?limit=50&sort=age", ""}, {"post", "POST", "/users", userJSON},
		} {
			b.Run(c.name+"/"+peer.name, func(b *testing.B) {
				r := httptest.NewRequest(c.method, c.target, nil)
				body := strings.NewReader(c.body)
				if c.body != "" {
					r.Header.Set("Content-Type", "application/json")
					r.Body, r.ContentLength = io.NopCloser(body), int64(len(c.body))
				}
				check := httptest.NewRecorder()
				peer.handler.ServeHTTP(check, r)
				if check.Code != 200 {
					b.Fatalf("got %d %s", check.Code, check.Body)
				}
				w := &bare{header: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					body.Reset(c.body)
					peer.handler.ServeHTTP(w, r)
				}
			})
		}
	}
}
