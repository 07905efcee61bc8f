package dunlin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// print answers a request and prints the response.
func print(app *dunlin.App, method, target string, headersAndBody ...string) {
	var body string
	if len(headersAndBody)%2 == 1 {
		body = headersAndBody[len(headersAndBody)-1]
	}
	w := doBody(app, method, target, body, headersAndBody[:len(headersAndBody)/2*2]...)
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("Content-Type"))))
	if w.Body.Len() > 0 {
		fmt.Println(strings.TrimSuffix(w.Body.String(), "\n"))
	}
}

// answer prints a response, which it sends through an app that gives it to every request.
func answer(resp dunlin.Response, headers ...string) {
	app := quiet()
	app.Get("/", constant(resp))
	w := do(app, "GET", "/")
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("Content-Type"))))
	for _, name := range headers {
		fmt.Printf("%s: %s\n", name, strings.Join(w.Header()[name], " | "))
	}
	if w.Body.Len() > 0 {
		fmt.Println(w.Body)
	}
}

// quiet returns an app that logs nothing.
func quiet() *dunlin.App { return dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}) }

func Example() {
	app := quiet()
	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		id, err := dunlin.Param[int](r, "id")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.JSON(map[string]int{"id": id})
	})
	print(app, "GET", "/users/7")
	print(app, "GET", "/users/me")
	// Output:
	// 200 application/json
	// {"id":7}
	// 404 application/problem+json
	// {"title":"Not Found","status":404}
}

func ExampleText() {
	answer(dunlin.Text("Hello, World!"))
	// Output:
	// 200 text/plain; charset=utf-8
	// Hello, World!
}

func ExampleHTML() {
	answer(dunlin.HTML("<h1>Dunlin</h1>"))
	// Output:
	// 200 text/html; charset=utf-8
	// <h1>Dunlin</h1>
}

func ExampleBytes() {
	answer(dunlin.Bytes("text/csv", []byte("id,name")))
	// Output:
	// 200 text/csv
	// id,name
}

func ExampleJSON() {
	type user struct {
		Name string `json:"name"`
	}
	answer(dunlin.JSON(user{"Ada <ada@example.com>"}))
	answer(dunlin.JSON(user{"Ada <ada@example.com>"}, dunlin.JSONNoEscapeHTML))
	// Output:
	// 200 application/json
	// {"name":"Ada \u003cada@example.com\u003e"}
	// 200 application/json
	// {"name":"Ada <ada@example.com>"}
}

func ExampleJSONSeq() {
	answer(dunlin.JSONSeq(slices.Values([]string{"a", "b"})))
	// Output:
	// 200 application/json
	// ["a","b"]
}

func ExampleEmpty() {
	answer(dunlin.Empty().Status(http.StatusAccepted), "Content-Length")
	// Output:
	// 202
	// Content-Length: 0
}

func ExampleNoContent() {
	answer(dunlin.NoContent())
	// Output: 204
}

func ExampleCreated() {
	answer(dunlin.Created("/users/7"), "Location")
	// Output:
	// 201
	// Location: /users/7
}

func ExampleRedirect() {
	answer(dunlin.Redirect("/login"), "Location")
	answer(dunlin.Redirect("/new").Status(http.StatusMovedPermanently), "Location")
	// Output:
	// 303
	// Location: /login
	// 301
	// Location: /new
}

func ExampleProblem() {
	answer(dunlin.Problem(&dunlin.ProblemDetails{
		Type:       "https://example.com/problems/no-credit",
		Title:      "You have no credit",
		Status:     http.StatusForbidden,
		Detail:     "the balance is 30, the price 50",
		Extensions: map[string]any{"balance": 30},
	}))
	// Output:
	// 403 application/problem+json
	// {"type":"https://example.com/problems/no-credit","title":"You have no credit","status":403,"detail":"the balance is 30, the price 50","balance":30}
}

func ExampleFormatProblems() {
	type envelope struct {
		Error string `json:"error"`
	}
	app := dunlin.New(dunlin.Config{
		Problems: dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) envelope {
			return envelope{p.Title}
		}),
	})
	print(app, "GET", "/nowhere")
	// Output:
	// 404 application/json
	// {"error":"Not Found"}
}

func ExampleError() {
	// The code that finds an error chooses its status and detail; the cause is logged only.
	find := func(id string) error {
		return &dunlin.ProblemDetails{Status: http.StatusNotFound, Detail: "no user " + id, Cause: errors.New("sql: no rows")}
	}
	answer(dunlin.Error(find("7")))
	answer(dunlin.Error(errors.New("connection refused")))
	// Output:
	// 404 application/problem+json
	// {"title":"Not Found","status":404,"detail":"no user 7"}
	// 500 application/problem+json
	// {"title":"Internal Server Error","status":500}
}

func ExampleNotFound() {
	answer(dunlin.NotFound())
	// Output:
	// 404 application/problem+json
	// {"title":"Not Found","status":404}
}

func ExampleNewHeaderBlock() {
	static := dunlin.NewHeaderBlock("Cache-Control", "public,max-age=30", "Vary", "Accept")
	answer(dunlin.Text("logo").With(static), "Cache-Control", "Vary")
	// Output:
	// 200 text/plain; charset=utf-8
	// Cache-Control: public,max-age=30
	// Vary: Accept
	// logo
}

func ExampleResponse() {
	base := dunlin.Text("x")
	fmt.Println(base)
	fmt.Println(base.Status(http.StatusTeapot).Header("Content-Type", "text/tea"))
	fmt.Println(base.Cache(time.Minute).Get("Cache-Control"))
	fmt.Println(base.CachePublic(time.Minute).Get("Cache-Control"))
	answer(base.Header("X-A", "1").AddHeader("X-A", "2").Cookie(&http.Cookie{Name: "session", Value: "s"}), "X-A", "Set-Cookie")
	// Output:
	// 200 text/plain; charset=utf-8 1 bytes
	// 418 text/tea 1 bytes
	// private, max-age=60
	// public, max-age=60
	// 200 text/plain; charset=utf-8
	// X-A: 1 | 2
	// Set-Cookie: session=s
	// x
}

func ExampleDecode() {
	type order struct {
		Items []struct {
			Count int64 `json:"count"`
		} `json:"items"`
	}
	app := quiet()
	app.Post("/orders", func(r *dunlin.Request) dunlin.Response {
		o, err := dunlin.Decode[order](r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.JSON(len(o.Items)).Status(http.StatusCreated)
	})
	print(app, "POST", "/orders", "Content-Type", "application/json", `{"items":[{"count":2}]}`)
	print(app, "POST", "/orders", "Content-Type", "application/json", `{"items":[{"count":"two"}]}`)
	// Output:
	// 201 application/json
	// 1
	// 400 application/problem+json
	// {"title":"Bad Request","status":400,"detail":"invalid value at /items/0/count: a string instead of an integer of 64 bits","offset":19,"pointer":"/items/0/count"}
}

func ExampleRequest() {
	app := quiet()
	app.Get("/{bucket}/{key...}", func(r *dunlin.Request) dunlin.Response {
		limit, err := dunlin.Param[int](r, "limit")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(r.Param("bucket"), " ", r.Param("key"), " ", limit, " ", r.Header("X-Trace"), " ", r.Route()))
	})
	print(app, "GET", "/photos/2026/summer%20sun.jpg?limit=5", "X-Trace", "t1")
	print(app, "GET", "/photos/2026?limit=many")
	// Output:
	// 200 text/plain; charset=utf-8
	// photos 2026/summer sun.jpg 5 t1 /{bucket}/{key...}
	// 400 application/problem+json
	// {"title":"Bad Request","status":400,"detail":"query parameter \"limit\" is \"many\": it must be an integer"}
}

func ExampleNewKey() {
	user := dunlin.NewKey[string]("user")
	app := quiet()
	app.Use(func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			user.Set(r, "ada")
			return next(r)
		}
	})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		name, ok := user.Get(r)
		return dunlin.Text(fmt.Sprint(name, " ", ok))
	})
	print(app, "GET", "/")
	// Output:
	// 200 text/plain; charset=utf-8
	// ada true
}

func ExampleMiddleware() {
	var log dunlin.Middleware = func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			fmt.Println(r.Method(), r.Path(), resp.StatusCode(), resp.Len())
			return resp
		}
	}
	app := quiet()
	app.Use(log)
	app.Get("/hello", text("hello"))
	do(app, "GET", "/hello")
	do(app, "GET", "/nowhere")
	// Output:
	// GET /hello 200 5
	// GET /nowhere 404 34
}

func ExampleGroup() {
	app := quiet()
	api := app.Group("/api/v1")
	api.Get("/users", text("users"))
	app.Host("{tenant}.example.com").Get("/home", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("tenant")) })
	print(app, "GET", "/api/v1/users")
	print(app, "GET", "http://acme.example.com/home")
	// Output:
	// 200 text/plain; charset=utf-8
	// users
	// 200 text/plain; charset=utf-8
	// acme
}

func ExampleRoute_Name() {
	app := quiet()
	app.Get("/users/{id:int}", text("")).Name("user")
	fmt.Println(app.URL("user", 7))
	_, err := app.URL("user", "ada")
	fmt.Println(err != nil)
	// Output:
	// /users/7 <nil>
	// true
}

func ExampleApp_Rewrite() {
	app := quiet()
	app.Rewrite("/v1/{path...}", "/api/{path...}")
	app.Get("/api/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(r.Route() + " for " + r.SentPath())
	})
	print(app, "GET", "/v1/users/7")
	// Output:
	// 200 text/plain; charset=utf-8
	// /api/users/{id:int} for /v1/users/7
}

func ExampleApp_Recover() {
	app := quiet()
	app.Recover(func(r *dunlin.Request, panicked any) dunlin.Response {
		return dunlin.Text("sorry").Status(http.StatusInternalServerError)
	})
	app.Get("/", func(*dunlin.Request) dunlin.Response { panic("oops") })
	print(app, "GET", "/")
	// Output:
	// 500 text/plain; charset=utf-8
	// sorry
}

func ExampleGroup_NotFound() {
	app := quiet()
	app.NotFound(func(*dunlin.Request) dunlin.Response { return dunlin.HTML("<h1>not here</h1>").Status(404) })
	api := app.Group("/api")
	api.NotFound(func(*dunlin.Request) dunlin.Response { return dunlin.NotFound() })
	print(app, "GET", "/nowhere")
	print(app, "GET", "/api/nowhere")
	// Output:
	// 404 text/html; charset=utf-8
	// <h1>not here</h1>
	// 404 application/problem+json
	// {"title":"Not Found","status":404}
}

func ExampleApp_ServeHTTP() {
	app := quiet()
	app.Get("/hello", text("hello"))
	mux := http.NewServeMux()
	mux.Handle("/app/", http.StripPrefix("/app", app))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/app/hello", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 hello
}

func ExampleFromStd() {
	app := quiet()
	app.Get("/old", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "from "+r.URL.Path)
	})))
	print(app, "GET", "/old")
	// Output:
	// 200 text/plain; charset=utf-8
	// from /old
}

func ExampleApp_Mount() {
	app := quiet()
	app.Mount("/legacy", http.NotFoundHandler())
	print(app, "GET", "/legacy/any/path")
	// Output:
	// 404 text/plain; charset=utf-8
	// 404 page not found
}

func ExampleApp_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	app := dunlin.New(dunlin.Config{
		Addr:   "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler),
		Ready:  func(net.Addr, dunlin.Engine) { cancel() }, // here, stop at once
	})
	fmt.Println(app.Run(ctx))
	// Output: <nil>
}

func ExampleRoute_LimitBy() {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	report := func(*dunlin.Request) dunlin.Response { return dunlin.Text("a report that took long\n") }
	app.Get("/report", report).
		Limit(20).      // at once, for all clients together
		LimitBy(nil, 2) // for each address
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
	fmt.Print(w.Body)
	// Output: a report that took long
}
