package dunlin_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// This file holds the cases that every engine must answer with the same bytes,
// Date and the order of different headers aside. A case is one request on a
// connection of its own, followed by a probe that shows whether the connection
// is still in step.

const parityMaxBody = 1000

// problem renders the answer that carries problem details, as rendered by
// readAnswer; extra are further header lines that sort before Content-Length.
func problem(status string, body string, before ...string) string {
	lines := append([]string{"HTTP/1.1 " + status}, before...)
	return strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "Content-Type: application/problem+json", "", body), "\n")
}

var (
	problem404 = problem("404 Not Found", `{"title":"Not Found","status":404}`)
	problem413 = problem("413 Request Entity Too Large", `{"title":"Request Entity Too Large","status":413,"detail":"the request body is larger than the limit of 1000 bytes"}`)
	problem500 = problem("500 Internal Server Error", `{"title":"Internal Server Error","status":500}`)
)

// plain renders the answer to a request for text.
func plain(body string, before ...string) string {
	lines := append([]string{"HTTP/1.1 200 OK"}, before...)
	return strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "Content-Type: text/plain; charset=utf-8", "", body), "\n")
}

// req renders a request; a body comes after an empty header.
func req(line string, headers ...string) string {
	var body string
	if i := slices.Index(headers, ""); i >= 0 {
		body, headers = headers[i+1], headers[:i]
		if !slices.Contains(headers, "Transfer-Encoding: chunked") {
			headers = append(slices.Clip(headers), fmt.Sprintf("Content-Length: %d", len(body)))
		}
	}
	lines := append([]string{line + " HTTP/1.1", "Host: h.example"}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

type parityCase struct {
	name, send, want string
	closes           bool
}

var parityCases = []parityCase{
	{name: "text", send: req("GET /text"), want: plain("Hello, World!")},
	{name: "HEAD of a GET route", send: req("HEAD /text"), want: "HTTP/1.1 200 OK\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\n"},
	{name: "HEAD of JSON", send: req("HEAD /json"), want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: application/json\n\n"},
	{name: "HEAD of nothing", send: req("HEAD /nowhere"), want: "HTTP/1.1 404 Not Found\nContent-Length: 34\nContent-Type: application/problem+json\n\n"},
	{name: "a target of 20 KB", send: req("GET /rest/" + strings.Repeat("x", 20_000)), want: plain(strings.Repeat("x", 20_000))},
	{name: "HTML", send: req("GET /html"), want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: text/html; charset=utf-8\n\n<p>a&b\n"},
	{name: "bytes", send: req("GET /bytes"), want: "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Type: application/octet-stream\n\n\x00\r\n\xff"},
	{name: "JSON", send: req("GET /json"), want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: application/json\n\n{\"a\":\"\\u003c\"}"},
	{name: "JSON element by element", send: req("GET /seq"), want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n[1,2,3]"},
	{name: "empty", send: req("GET /empty"), want: "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
	{name: "204", send: req("GET /204"), want: "HTTP/1.1 204 No Content\n\n"},
	{name: "204 of a response with a body", send: req("GET /204body"), want: "HTTP/1.1 204 No Content\nContent-Type: text/plain; charset=utf-8\n\n"},
	{name: "304 of a response with a body", send: req("GET /304"), want: "HTTP/1.1 304 Not Modified\nEtag: \"1\"\n\n"},
	{name: "HEAD of 204", send: req("HEAD /204"), want: "HTTP/1.1 204 No Content\n\n"},
	{name: "created", send: req("POST /created"), want: "HTTP/1.1 201 Created\nContent-Length: 0\nLocation: /things/7\n\n"},
	{name: "redirect", send: req("GET /redirect"), want: "HTTP/1.1 303 See Other\nContent-Length: 0\nLocation: /text?a=b\n\n"},
	{name: "an uncommon status", send: req("GET /status/599"), want: "HTTP/1.1 599 status code 599\nContent-Length: 0\n\n"},
	{name: "418", send: req("GET /status/418"), want: "HTTP/1.1 418 I'm a teapot\nContent-Length: 0\n\n"},

	{name: "404", send: req("GET /nowhere"), want: problem404},
	{name: "405", send: req("DELETE /text"), want: problem("405 Method Not Allowed",
		`{"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not DELETE"}`, "Allow: GET, HEAD, OPTIONS")},
	{name: "405 for a method of one's own", send: req("PURGE /text"), want: problem("405 Method Not Allowed",
		`{"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not PURGE"}`, "Allow: GET, HEAD, OPTIONS")},
	{name: "OPTIONS", send: req("OPTIONS /text"), want: "HTTP/1.1 204 No Content\nAllow: GET, HEAD, OPTIONS\n\n"},
	{name: "OPTIONS of nothing", send: req("OPTIONS /nowhere"), want: problem404},
	{name: "OPTIONS for the server", send: req("OPTIONS *"), want: "HTTP/1.1 204 No Content\n\n"},
	{name: "a method of one's own", send: req("QUERY /own"), want: plain("QUERY")},

	{name: "absolute target", send: req("GET http://other.example/host"), want: plain("other.example")},
	{name: "absolute target without a path", send: req("GET http://other.example"), want: plain("root")},
	{name: "host", send: req("GET /host"), want: plain("h.example")},

	{name: "echo", send: req("POST /echo", "Content-Type: text/x", "", "some\x00bytes"), want: "HTTP/1.1 200 OK\nContent-Length: 10\nContent-Type: text/x\n\nsome\x00bytes"},
	{name: "echo without a type", send: req("POST /echo", "", "bytes"), want: "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Type: application/octet-stream\n\nbytes"},
	{name: "echo of nothing", send: req("POST /echo", "", ""), want: "HTTP/1.1 200 OK\nContent-Length: 0\nContent-Type: application/octet-stream\n\n"},
	{name: "echo without a length", send: req("POST /echo"), want: "HTTP/1.1 200 OK\nContent-Length: 0\nContent-Type: application/octet-stream\n\n"},
	{name: "echo of chunks", send: req("POST /echo", "Transfer-Encoding: chunked", "Content-Type: text/x", "", "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n"),
		want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: text/x\n\nabcdefg"},
	{name: "echo of the largest body", send: req("POST /echo", "Content-Type: t/t", "", strings.Repeat("x", parityMaxBody)),
		want: "HTTP/1.1 200 OK\nContent-Length: 1000\nContent-Type: t/t\n\n" + strings.Repeat("x", parityMaxBody)},
	{name: "echo through a reader", send: req("POST /reader", "", "some bytes"), want: plain("10 some bytes")},
	{name: "reader of chunks", send: req("POST /reader", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n"), want: plain("-1 abc")},
	{name: "half a body read", send: req("POST /half", "", "some bytes"), want: plain("some")},
	{name: "a body nobody reads", send: req("POST /ignore", "", strings.Repeat("x", 900)), want: plain("ignored")},
	{name: "a body for GET", send: req("GET /text", "", "body"), want: plain("Hello, World!")},
	{name: "a body for 404", send: req("POST /nowhere", "", "GET /text HTTP/1.1\r\nHost: smuggled\r\n\r\n"), want: problem404},
	{name: "chunks nobody reads", send: req("POST /ignore", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n"), want: plain("ignored")},
	{name: "decoded JSON", send: req("POST /decode", "Content-Type: application/json", "", `{"n":7}`), want: plain("7")},

	{name: "query", send: req("GET /query?a=1&b=x%20y+z&c=%C3%A9&a=2&d&e="), want: plain("a=[1 2] b=[x y z] c=[é] d=[] e=[] f=none raw=a=1&b=x%20y+z&c=%C3%A9&a=2&d&e=")},
	{name: "malformed query", send: req("GET /query?a=%zz&b=1;c=2&&=x&a=ok&c=%"), want: plain("a=[ok] b=none c=none d=none e=none f=none raw=a=%zz&b=1;c=2&&=x&a=ok&c=%")},
	{name: "escaped query name", send: req("GET /query?%61=1&b%2B=2"), want: plain("a=[1] b=none c=none d=none e=none f=none raw=%61=1&b%2B=2")},
	{name: "query and escaped path", send: req("GET /seg/a%2Fb?x=%31%32%33%34%35%36%37%38"), want: plain("12345678 a/b /seg/a%2Fb")},

	{name: "escaped slash", send: req("GET /seg/a%2fb"), want: plain(" a/b /seg/a%2Fb")},
	{name: "escaped percent", send: req("GET /seg/100%25"), want: plain(" 100% /seg/100%25")},
	{name: "escaped percent before digits", send: req("GET /seg/%252F"), want: plain(" %2F /seg/%252F")},
	{name: "UTF-8 in a path", send: req("GET /seg/caf%C3%A9"), want: plain(" café /seg/café")},
	{name: "needless escape", send: req("GET /%74ext"), want: plain("Hello, World!")},
	{name: "plus in a path", send: req("GET /seg/a+b%20c"), want: plain(" a+b c /seg/a+b c")},
	{name: "catch-all", send: req("GET /rest/a/b%2Fc/"), want: plain("a/b/c/")},

	{name: "cookies", send: req("GET /cookies", `Cookie: a=1; b="2"; bad="; a=3; c=x=y`), want: plain(`a=1 b=2 c=x=y bad=`)},
	{name: "request headers", send: req("GET /headers", "x-one: 1", "X-Two: 2", "X-TWO: 3", "X-Empty:", "X-Pad:   padded  "), want: plain("one=1 two=2 empty= pad=padded all=[2 3]")},

	{name: "panic", send: req("GET /panic"), want: problem500},
	{name: "zero response", send: req("GET /zero"), want: problem500},
	{name: "value that cannot be encoded", send: req("GET /nan"), want: problem500},
	{name: "header that must not be sent", send: req("GET /inject"), want: problem500},
	{name: "error with a status", send: req("GET /conflict"), want: problem("409 Conflict", `{"title":"Conflict","status":409,"detail":"taken"}`)},

	{name: "replaced header", send: req("GET /replaced"), want: "HTTP/1.1 200 OK\nContent-Length: 1\nContent-Type: text/csv\nX-A: 2\n\nx"},
	{name: "header of several values", send: req("GET /values"), want: "HTTP/1.1 200 OK\nContent-Length: 0\nSet-Cookie: a=1\nSet-Cookie: b=2; HttpOnly\nVary: Accept\nVary: Origin\n\n"},
	{name: "block", send: req("GET /block"), want: "HTTP/1.1 200 OK\nCache-Control: public,max-age=30\nContent-Length: 12\nContent-Type: text/plain\n\nhello world!"},
	{name: "block and headers", send: req("GET /blocks"), want: "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Length: 1\nContent-Type: text/plain\nX-A: 1\nX-A: 2\nX-B: b\n\nx"},
	{name: "padded and empty header", send: req("GET /padded"), want: "HTTP/1.1 200 OK\nContent-Length: 0\nX-Empty: \nX-Pad: padded\n\n"},
	{name: "100 KB of JSON", send: req("GET /big"), want: "HTTP/1.1 200 OK\nContent-Length: 102402\nContent-Type: application/json\n\n\"" + strings.Repeat("0123456789abcdef", 6400) + "\""},

	{name: "Connection: close", send: req("GET /text", "Connection: close"), want: plain("Hello, World!", "Connection: close"), closes: true},
	{name: "Connection: Close among others", send: req("GET /text", "Connection: x, Close"), want: plain("Hello, World!", "Connection: close"), closes: true},
	{name: "Connection: keep-alive", send: req("GET /text", "Connection: keep-alive"), want: plain("Hello, World!")},
	{name: "HTTP/1.0", send: "GET /text HTTP/1.0\r\n\r\n", want: "HTTP/1.0 200 OK\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\nHello, World!", closes: true},
	{name: "HTTP/1.0 with keep-alive", send: "GET /text HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		want: "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\nHello, World!"},

	{name: "standard handler", send: req("GET /std/plain"), want: "HTTP/1.1 202 Accepted\nContent-Length: 17\nContent-Type: text/plain; charset=utf-8\nX-Std: 1\n\nstd: /std/plain ?"},
	{name: "HEAD of a standard handler", send: req("HEAD /std/plain"), want: "HTTP/1.1 202 Accepted\nContent-Length: 17\nContent-Type: text/plain; charset=utf-8\nX-Std: 1\n\n"},
	{name: "standard handler that says nothing", send: req("GET /std/silent"), want: "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
	{name: "standard handler that reads", send: req("POST /std/read?q=1", "", "body"), want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: text/plain; charset=utf-8\n\nPOST q=1: body"},
	{name: "standard handler that flushes", send: req("GET /std/flush"), want: "HTTP/1.1 200 OK\nContent-Type: text/x\nTransfer-Encoding: chunked\n\nfirst second"},
}

// registerParity registers what the cases ask for.
func registerParity(app *dunlin.App) {
	answer := func(path string, resp func() dunlin.Response) {
		app.Handle("*", path, func(*dunlin.Request) dunlin.Response { return resp() })
	}
	app.Get("/probe", text("probe"))
	app.Get("/", text("root"))
	app.Get("/text", text("Hello, World!"))
	answer("/html", func() dunlin.Response { return dunlin.HTML("<p>a&b\n") })
	answer("/bytes", func() dunlin.Response { return dunlin.Bytes("", []byte("\x00\r\n\xff")) })
	answer("/json", func() dunlin.Response { return dunlin.JSON(map[string]string{"a": "<"}) })
	answer("/seq", func() dunlin.Response { return dunlin.JSONSeq(slices.Values([]int{1, 2, 3})) })
	answer("/empty", dunlin.Empty)
	answer("/204", dunlin.NoContent)
	answer("/204body", func() dunlin.Response { return dunlin.Text("dropped").Status(204) })
	answer("/304", func() dunlin.Response { return dunlin.Text("dropped").Status(304).Header("Etag", `"1"`) })
	answer("/created", func() dunlin.Response { return dunlin.Created("/things/7") })
	answer("/redirect", func() dunlin.Response { return dunlin.Redirect("/text?a=b") })
	app.Get("/status/{code}", func(r *dunlin.Request) dunlin.Response {
		code, err := r.Int("code")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Empty().Status(code)
	})
	app.Handle("QUERY", "/own", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Method()) })
	app.Get("/host", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Host()) })
	registerParityInput(app)
	registerParityFailures(answer)
	registerParityHeaders(answer)
	app.Mount("/std", parityStd())
}

func registerParityInput(app *dunlin.App) {
	app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes(r.Header("Content-Type"), body)
	})
	app.Post("/reader", func(r *dunlin.Request) dunlin.Response {
		body, err := io.ReadAll(r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprintf("%d %s", r.ContentLength(), body))
	})
	app.Post("/half", func(r *dunlin.Request) dunlin.Response {
		half := make([]byte, 4)
		if _, err := io.ReadFull(r.Body(), half); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/plain; charset=utf-8", half)
	})
	app.Post("/ignore", text("ignored"))
	app.Post("/decode", func(r *dunlin.Request) dunlin.Response {
		v, err := dunlin.Decode[struct{ N int }](r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(v.N))
	})
	app.Get("/query", func(r *dunlin.Request) dunlin.Response {
		var b bytes.Buffer
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if !r.HasQuery(name) {
				fmt.Fprintf(&b, "%s=none ", name)
				continue
			}
			fmt.Fprintf(&b, "%s=%v ", name, slices.Collect(r.QueryAll(name)))
		}
		return dunlin.Text(b.String() + "raw=" + r.RawQuery())
	})
	app.Get("/seg/{x}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(r.Query("x") + " " + r.Param("x") + " " + r.Path())
	})
	app.Get("/rest/{rest...}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("rest")) })
	app.Get("/cookies", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text("a=" + r.Cookie("a") + " b=" + r.Cookie("b") + " c=" + r.Cookie("c") + " bad=" + r.Cookie("bad"))
	})
	app.Get("/headers", func(r *dunlin.Request) dunlin.Response {
		var all []string
		for name, value := range r.Headers() {
			if strings.EqualFold(name, "X-Two") {
				all = append(all, value)
			}
		}
		return dunlin.Text(fmt.Sprintf("one=%s two=%s empty=%s pad=%s all=%v", r.Header("X-ONE"), r.Header("x-two"), r.Header("X-Empty"), r.Header("X-Pad"), all))
	})
}

func registerParityFailures(answer func(string, func() dunlin.Response)) {
	answer("/panic", func() dunlin.Response { panic("asked for") })
	answer("/abort", func() dunlin.Response { panic(http.ErrAbortHandler) })
	answer("/zero", func() dunlin.Response { return dunlin.Response{} })
	answer("/nan", func() dunlin.Response { return dunlin.JSON(math.NaN()) })
	answer("/inject", func() dunlin.Response { return dunlin.Text("x").Header("X", "a\r\nSet-Cookie: a=b") })
	answer("/conflict", func() dunlin.Response {
		return dunlin.Error(&dunlin.ProblemDetails{Status: 409, Detail: "taken", Cause: io.ErrUnexpectedEOF})
	})
}

var (
	cachedBlock = dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30")
	varyBlock   = dunlin.NewHeaderBlock("Vary", "Accept")
	xBlock      = dunlin.NewHeaderBlock("X-A", "0", "X-B", "b")
)

func registerParityHeaders(answer func(string, func() dunlin.Response)) {
	answer("/replaced", func() dunlin.Response {
		return dunlin.Text("x").Header("X-A", "1").Header("x-a", "2").Header("content-type", "text/csv")
	})
	answer("/values", func() dunlin.Response {
		return dunlin.Empty().Headers(varyBlock).AddHeader("Vary", "Origin").
			Cookie(&http.Cookie{Name: "a", Value: "1"}).Cookie(&http.Cookie{Name: "b", Value: "2", HttpOnly: true})
	})
	answer("/block", func() dunlin.Response { return dunlin.Text("hello world!").Headers(cachedBlock) })
	answer("/blocks", func() dunlin.Response {
		return dunlin.Text("x").Headers(cachedBlock).Headers(xBlock).Header("X-A", "1").AddHeader("X-A", "2").Cache(0)
	})
	answer("/padded", func() dunlin.Response { return dunlin.Empty().Header("X-Pad", "  padded\t").Header("X-Empty", "") })
	answer("/big", func() dunlin.Response { return dunlin.JSON(strings.Repeat("0123456789abcdef", 6400)) })
}

// parityStd is a standard handler that does what such handlers do.
func parityStd() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/std/plain", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Std", "1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, "std: %s ?%s", r.URL.Path, r.URL.RawQuery)
	})
	mux.HandleFunc("/std/silent", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/std/read", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s: %s", r.Method, r.URL.RawQuery, body)
	})
	mux.HandleFunc("/std/flush", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x")
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "second")
	})
	return mux
}

func TestParity(t *testing.T) {
	onAdapters(t, func(t *testing.T, a adapter) {
		talk := a.serve(t, dunlin.Config{MaxBody: parityMaxBody}, registerParity)
		for _, c := range parityCases {
			t.Run(c.name, func(t *testing.T) {
				got := talk(t, c.closes, c.send)[0]
				if got != c.want {
					t.Errorf("answer:\n%s\nwant:\n%s", clip(got), clip(c.want))
				}
			})
		}
	})
}

// clip shortens a large answer for a message.
func clip(s string) string {
	if len(s) > 2000 {
		return s[:2000] + "…"
	}
	return s
}
