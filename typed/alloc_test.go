package typed_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/typed"
)

// listQuery is the input of the measured GET: an integer in the path and two query parameters.
type listQuery struct {
	ID    int    `path:"id"`
	Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Sort  string `query:"sort" default:"name"`
}

type listed struct {
	ID    int    `json:"id"`
	Limit int    `json:"limit"`
	Sort  string `json:"sort"`
	OK    bool   `json:"ok"`
}

func typedList(app *dunlin.App) {
	typed.Get(app, "/users/{id:int}", func(_ *dunlin.Request, in listQuery) (listed, error) {
		return listed{ID: in.ID, Limit: in.Limit, Sort: in.Sort, OK: true}, nil
	})
}

// bareList is the same action with package dunlin only.
func bareList(app *dunlin.App) {
	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		id, err := dunlin.Param[int](r, "id")
		if err != nil {
			return dunlin.Error(err)
		}
		limit := 20
		if r.HasQuery("limit") {
			if limit, err = dunlin.Param[int](r, "limit"); err != nil {
				return dunlin.Error(err)
			}
		}
		if limit < 1 || limit > 100 {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 400, Detail: "limit"})
		}
		sort := r.Query("sort")
		if sort == "" {
			sort = "name"
		}
		return dunlin.JSON(listed{id, limit, sort, true})
	})
}

// newUser is the body of the measured POST: six fields, eight rules.
type newUser struct {
	Name  string   `json:"name" minLength:"1" maxLength:"80"`
	Mail  string   `json:"mail" format:"email"`
	Age   int      `json:"age" minimum:"0" maximum:"150"`
	Score float64  `json:"score" minimum:"0"`
	Admin bool     `json:"admin"`
	Tags  []string `json:"tags" maxItems:"10" uniqueItems:"false"`
}

const newUserJSON = `{"name":"Ada Lovelace","mail":"ada@example.com","age":36,"score":4.5,"admin":true,"tags":["first","second"]}`

func typedCreate(app *dunlin.App) {
	typed.Post(app, "/users", func(_ *dunlin.Request, in struct{ Body newUser }) (typed.None, error) {
		return typed.None{}, nil
	})
}

func handCreate(app *dunlin.App) {
	app.Post("/users", func(r *dunlin.Request) dunlin.Response {
		u, err := dunlin.Decode[newUser](r)
		if err != nil {
			return dunlin.Error(err)
		}
		if len(u.Name) < 1 || len(u.Name) > 80 || !strings.Contains(u.Mail, "@") || u.Age < 0 || u.Age > 150 || u.Score < 0 || len(u.Tags) > 10 {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 400})
		}
		return dunlin.NoContent()
	})
}

// A bare is a ResponseWriter that does not allocate.
type bare struct {
	header http.Header
	status int
}

func (w *bare) Header() http.Header         { return w.header }
func (w *bare) Write(b []byte) (int, error) { return len(b), nil }
func (w *bare) WriteHeader(status int)      { w.status = status }

// repeated sends the same request to an app repeatedly, with minimal overhead.
func repeated(tb testing.TB, register func(*dunlin.App), method, target, body string, status int) func() {
	app := quiet()
	register(app)
	r := httptest.NewRequest(method, target, nil)
	reader := strings.NewReader(body)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
	}
	w := &bare{header: http.Header{}}
	ask := func() {
		clear(w.header)
		reader.Reset(body)
		app.ServeHTTP(w, r)
	}
	if ask(); w.status != status {
		tb.Fatalf("got status %d, want %d", w.status, status)
	}
	return ask
}

const listTarget = "/users/17?limit=50&sort=age"

func TestAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct {
		name, method, target, body string
		register, beside           func(*dunlin.App)
		status                     int
		most                       float64 // maximum number of allocations in addition to those of beside
	}{
		{"get", "GET", listTarget, "", typedList, bareList, 200, 0},
		{"get with defaults", "GET", "/users/17", "", typedList, bareList, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			mine := testing.AllocsPerRun(500, repeated(t, c.register, c.method, c.target, c.body, c.status))
			hand := testing.AllocsPerRun(500, repeated(t, c.beside, c.method, c.target, c.body, c.status))
			if mine > hand+c.most {
				t.Errorf("got %v allocations, %v with package dunlin only", mine, hand)
			}
		})
	}
}

// A body costs only the allocations of its strings and slices: one for all strings, one for the slice.
func TestBodyAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	read := testing.AllocsPerRun(500, repeated(t, readAll, "POST", "/users", newUserJSON, 204))
	mine := testing.AllocsPerRun(500, repeated(t, typedCreate, "POST", "/users", newUserJSON, 204))
	if mine > read+2 {
		t.Errorf("got %v allocations, %v of them to read the body", mine, read)
	}
}

// readAll registers an action that reads the body and answers without content.
func readAll(app *dunlin.App) {
	app.Post("/users", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Bytes(); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	})
}

// A body with three violations costs at most eight allocations more than an accepted body with an empty response.
func TestRefusalAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	const wrong = `{"name":"","mail":"nobody","age":151,"score":0,"admin":true,"tags":[]}`
	nothing := testing.AllocsPerRun(500, repeated(t, readAll, "POST", "/users", wrong, 204))
	refused := testing.AllocsPerRun(500, repeated(t, typedCreate, "POST", "/users", wrong, 400))
	if refused-nothing > 8 {
		t.Errorf("got %v allocations, %v for an accepted body", refused, nothing)
	}
}

func benchmark(b *testing.B, register func(*dunlin.App), method, target, body string, status int) {
	ask := repeated(b, register, method, target, body, status)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

func BenchmarkGet(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmark(b, typedList, "GET", listTarget, "", 200) })
	b.Run("hand", func(b *testing.B) { benchmark(b, bareList, "GET", listTarget, "", 200) })
}

func BenchmarkPost(b *testing.B) {
	b.Run("typed", func(b *testing.B) { benchmark(b, typedCreate, "POST", "/users", newUserJSON, 204) })
	b.Run("hand", func(b *testing.B) { benchmark(b, handCreate, "POST", "/users", newUserJSON, 204) })
	b.Run("refused", func(b *testing.B) {
		benchmark(b, typedCreate, "POST", "/users", `{"name":"","mail":"nobody","age":151,"score":0,"admin":true,"tags":[]}`, 400)
	})
}
