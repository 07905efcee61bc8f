package suite

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// MaxBody is the limit for request bodies in the cases, in bytes.
const MaxBody = 1000

// A Case is a request and its answer, as ReadAnswer renders it.
type Case struct {
	Name, Send, Want string
	Closes           bool // the server closes the connection after the answer
}

// Cases are requests that every adapter must answer in the same way.
var Cases = []Case{
	{Name: "text", Send: Request("GET /text"), Want: Plain("Hello, World!")},
	{Name: "HEAD of a GET route", Send: Request("HEAD /text"), Want: "HTTP/1.1 200 OK\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\n"},
	{Name: "HEAD of JSON", Send: Request("HEAD /json"), Want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: application/json\n\n"},
	{Name: "HEAD of nothing", Send: Request("HEAD /nowhere"), Want: "HTTP/1.1 404 Not Found\nContent-Length: 34\nContent-Type: application/problem+json\n\n"},
	{Name: "a target of 20 KB", Send: Request("GET /rest/" + strings.Repeat("x", 20_000)), Want: Plain(strings.Repeat("x", 20_000))},
	{Name: "HTML", Send: Request("GET /html"), Want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: text/html; charset=utf-8\n\n<p>a&b\n"},
	{Name: "bytes", Send: Request("GET /bytes"), Want: "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Type: application/octet-stream\n\n\x00\r\n\xff"},
	{Name: "JSON", Send: Request("GET /json"), Want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: application/json\n\n{\"a\":\"\\u003c\"}"},
	{Name: "JSON element by element", Send: Request("GET /seq"), Want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n[1,2,3]"},
	{Name: "empty", Send: Request("GET /empty"), Want: "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
	{Name: "204", Send: Request("GET /204"), Want: "HTTP/1.1 204 No Content\n\n"},
	{Name: "204 of a response with a body", Send: Request("GET /204body"), Want: "HTTP/1.1 204 No Content\nContent-Type: text/plain; charset=utf-8\n\n"},
	{Name: "304 of a response with a body", Send: Request("GET /304"), Want: "HTTP/1.1 304 Not Modified\nEtag: \"1\"\n\n"},
	{Name: "HEAD of 204", Send: Request("HEAD /204"), Want: "HTTP/1.1 204 No Content\n\n"},
	{Name: "created", Send: Request("POST /created"), Want: "HTTP/1.1 201 Created\nContent-Length: 0\nLocation: /things/7\n\n"},
	{Name: "redirect", Send: Request("GET /redirect"), Want: "HTTP/1.1 303 See Other\nContent-Length: 0\nLocation: /text?a=b\n\n"},
	{Name: "an uncommon status", Send: Request("GET /status/599"), Want: "HTTP/1.1 599 status code 599\nContent-Length: 0\n\n"},
	{Name: "418", Send: Request("GET /status/418"), Want: "HTTP/1.1 418 I'm a teapot\nContent-Length: 0\n\n"},

	{Name: "404", Send: Request("GET /nowhere"), Want: Problem404},
	{Name: "405", Send: Request("DELETE /text"), Want: Problem("405 Method Not Allowed",
		`{"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not DELETE"}`, "Allow: GET, HEAD, OPTIONS")},
	{Name: "405 for a method of one's own", Send: Request("PURGE /text"), Want: Problem("405 Method Not Allowed",
		`{"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not PURGE"}`, "Allow: GET, HEAD, OPTIONS")},
	{Name: "OPTIONS", Send: Request("OPTIONS /text"), Want: "HTTP/1.1 204 No Content\nAllow: GET, HEAD, OPTIONS\n\n"},
	{Name: "OPTIONS of nothing", Send: Request("OPTIONS /nowhere"), Want: Problem404},
	{Name: "OPTIONS for the server", Send: Request("OPTIONS *"), Want: "HTTP/1.1 204 No Content\n\n"},
	{Name: "a method of one's own", Send: Request("QUERY /own"), Want: Plain("QUERY")},

	{Name: "absolute target", Send: Request("GET http://other.example/host"), Want: Plain("other.example")},
	{Name: "absolute target without a path", Send: Request("GET http://other.example"), Want: Plain("root")},
	{Name: "host", Send: Request("GET /host"), Want: Plain("h.example")},

	{Name: "echo", Send: Request("POST /echo", "Content-Type: text/x", "", "some\x00bytes"), Want: "HTTP/1.1 200 OK\nContent-Length: 10\nContent-Type: text/x\n\nsome\x00bytes"},
	{Name: "echo without a type", Send: Request("POST /echo", "", "bytes"), Want: "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Type: application/octet-stream\n\nbytes"},
	{Name: "echo of nothing", Send: Request("POST /echo", "", ""), Want: "HTTP/1.1 200 OK\nContent-Length: 0\nContent-Type: application/octet-stream\n\n"},
	{Name: "echo without a length", Send: Request("POST /echo"), Want: "HTTP/1.1 200 OK\nContent-Length: 0\nContent-Type: application/octet-stream\n\n"},
	{Name: "echo of chunks", Send: Request("POST /echo", "Transfer-Encoding: chunked", "Content-Type: text/x", "", "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n"),
		Want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: text/x\n\nabcdefg"},
	{Name: "echo of the largest body", Send: Request("POST /echo", "Content-Type: t/t", "", strings.Repeat("x", MaxBody)),
		Want: "HTTP/1.1 200 OK\nContent-Length: 1000\nContent-Type: t/t\n\n" + strings.Repeat("x", MaxBody)},
	{Name: "echo through a reader", Send: Request("POST /reader", "", "some bytes"), Want: Plain("10 some bytes")},
	{Name: "reader of chunks", Send: Request("POST /reader", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n"), Want: Plain("-1 abc")},
	{Name: "half a body read", Send: Request("POST /half", "", "some bytes"), Want: Plain("some")},
	{Name: "an unread body", Send: Request("POST /ignore", "", strings.Repeat("x", 900)), Want: Plain("ignored")},
	{Name: "a body for GET", Send: Request("GET /text", "", "body"), Want: Plain("Hello, World!")},
	{Name: "a body for 404", Send: Request("POST /nowhere", "", "GET /text HTTP/1.1\r\nHost: smuggled\r\n\r\n"), Want: Problem404},
	{Name: "unread chunks", Send: Request("POST /ignore", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n"), Want: Plain("ignored")},
	{Name: "decoded JSON", Send: Request("POST /decode", "Content-Type: application/json", "", `{"n":7}`), Want: Plain("7")},

	{Name: "query", Send: Request("GET /query?a=1&b=x%20y+z&c=%C3%A9&a=2&d&e="), Want: Plain("a=[1 2] b=[x y z] c=[é] d=[] e=[] f=none raw=a=1&b=x%20y+z&c=%C3%A9&a=2&d&e=")},
	{Name: "malformed query", Send: Request("GET /query?a=%zz&b=1;c=2&&=x&a=ok&c=%"), Want: Plain("a=[ok] b=none c=none d=none e=none f=none raw=a=%zz&b=1;c=2&&=x&a=ok&c=%")},
	{Name: "escaped query name", Send: Request("GET /query?%61=1&b%2B=2"), Want: Plain("a=[1] b=none c=none d=none e=none f=none raw=%61=1&b%2B=2")},
	{Name: "query and escaped path", Send: Request("GET /seg/a%2Fb?x=%31%32%33%34%35%36%37%38"), Want: Plain("12345678 a/b /seg/a%2Fb")},

	{Name: "escaped slash", Send: Request("GET /seg/a%2fb"), Want: Plain(" a/b /seg/a%2Fb")},
	{Name: "escaped percent", Send: Request("GET /seg/100%25"), Want: Plain(" 100% /seg/100%25")},
	{Name: "escaped percent before digits", Send: Request("GET /seg/%252F"), Want: Plain(" %2F /seg/%252F")},
	{Name: "UTF-8 in a path", Send: Request("GET /seg/caf%C3%A9"), Want: Plain(" café /seg/café")},
	{Name: "needless escape", Send: Request("GET /%74ext"), Want: Plain("Hello, World!")},
	{Name: "plus in a path", Send: Request("GET /seg/a+b%20c"), Want: Plain(" a+b c /seg/a+b c")},
	{Name: "catch-all", Send: Request("GET /rest/a/b%2Fc/"), Want: Plain("a/b/c/")},

	{Name: "cookies in several lines", Send: Request("GET /cookies", "Cookie: a=1; x=y", "Cookie: b=2; a=3", "Cookie: c=4"), Want: Plain(`a=1 b=2 c=4 bad=`)},
	{Name: "cookies", Send: Request("GET /cookies", `Cookie: a=1; b="2"; bad="; a=3; c=x=y`), Want: Plain(`a=1 b=2 c=x=y bad=`)},
	{Name: "request headers", Send: Request("GET /headers", "x-one: 1", "X-Two: 2", "X-TWO: 3", "X-Empty:", "X-Pad:   padded  "), Want: Plain("one=1 two=2 empty= pad=padded all=[2 3]")},

	{Name: "panic", Send: Request("GET /panic"), Want: Problem500},
	{Name: "zero response", Send: Request("GET /zero"), Want: Problem500},
	{Name: "value that cannot be encoded", Send: Request("GET /nan"), Want: Problem500},
	{Name: "header that must not be sent", Send: Request("GET /inject"), Want: Problem500},
	{Name: "error with a status", Send: Request("GET /conflict"), Want: Problem("409 Conflict", `{"title":"Conflict","status":409,"detail":"taken"}`)},

	{Name: "replaced header", Send: Request("GET /replaced"), Want: "HTTP/1.1 200 OK\nContent-Length: 1\nContent-Type: text/csv\nX-A: 2\n\nx"},
	{Name: "header of several values", Send: Request("GET /values"), Want: "HTTP/1.1 200 OK\nContent-Length: 0\nSet-Cookie: a=1\nSet-Cookie: b=2; HttpOnly\nVary: Accept\nVary: Origin\n\n"},
	{Name: "block", Send: Request("GET /block"), Want: "HTTP/1.1 200 OK\nCache-Control: public,max-age=30\nContent-Length: 12\nContent-Type: text/plain\n\nhello world!"},
	{Name: "block and headers", Send: Request("GET /blocks"), Want: "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Length: 1\nContent-Type: text/plain\nX-A: 1\nX-A: 2\nX-B: b\n\nx"},
	{Name: "padded and empty header", Send: Request("GET /padded"), Want: "HTTP/1.1 200 OK\nContent-Length: 0\nX-Empty: \nX-Pad: padded\n\n"},
	{Name: "100 KB of JSON", Send: Request("GET /big"), Want: "HTTP/1.1 200 OK\nContent-Length: 102402\nContent-Type: application/json\n\n\"" + strings.Repeat("0123456789abcdef", 6400) + "\""},

	{Name: "Connection: close", Send: Request("GET /text", "Connection: close"), Want: Plain("Hello, World!", "Connection: close"), Closes: true},
	{Name: "Connection: Close among others", Send: Request("GET /text", "Connection: x, Close"), Want: Plain("Hello, World!", "Connection: close"), Closes: true},
	{Name: "Connection: keep-alive", Send: Request("GET /text", "Connection: keep-alive"), Want: Plain("Hello, World!")},
	{Name: "HTTP/1.0", Send: "GET /text HTTP/1.0\r\n\r\n", Want: "HTTP/1.0 200 OK\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\nHello, World!", Closes: true},
	{Name: "HTTP/1.0 with keep-alive", Send: "GET /text HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		Want: "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 13\nContent-Type: text/plain; charset=utf-8\n\nHello, World!"},

	{Name: "standard handler", Send: Request("GET /std/plain"), Want: "HTTP/1.1 202 Accepted\nContent-Length: 17\nContent-Type: text/plain; charset=utf-8\nX-Std: 1\n\nstd: /std/plain ?"},
	{Name: "HEAD of a standard handler", Send: Request("HEAD /std/plain"), Want: "HTTP/1.1 202 Accepted\nContent-Length: 17\nContent-Type: text/plain; charset=utf-8\nX-Std: 1\n\n"},
	{Name: "standard handler that says nothing", Send: Request("GET /std/silent"), Want: "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
	{Name: "standard handler that reads", Send: Request("POST /std/read?q=1", "", "body"), Want: "HTTP/1.1 200 OK\nContent-Length: 14\nContent-Type: text/plain; charset=utf-8\n\nPOST q=1: body"},
	{Name: "standard handler that flushes", Send: Request("GET /std/flush"), Want: "HTTP/1.1 200 OK\nContent-Type: text/x\nTransfer-Encoding: chunked\n\nfirst second"},
}

// Register registers the routes of the cases.
func Register(app *dunlin.App) {
	answer := func(path string, resp func() dunlin.Response) {
		app.Handle("*", path, func(*dunlin.Request) dunlin.Response { return resp() })
	}
	app.Get("/probe", Text("probe"))
	app.Get("/", Text("root"))
	app.Get("/text", Text("Hello, World!"))
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
		code, err := dunlin.Param[int](r, "code")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Empty().Status(code)
	})
	app.Handle("QUERY", "/own", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Method()) })
	app.Get("/host", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Host()) })
	registerInput(app)
	registerFailures(answer)
	registerHeaders(answer)
	app.Mount("/std", stdHandler())
}

func registerInput(app *dunlin.App) {
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
	app.Post("/ignore", Text("ignored"))
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

func registerFailures(answer func(string, func() dunlin.Response)) {
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

func registerHeaders(answer func(string, func() dunlin.Response)) {
	answer("/replaced", func() dunlin.Response {
		return dunlin.Text("x").Header("X-A", "1").Header("x-a", "2").Header("content-type", "text/csv")
	})
	answer("/values", func() dunlin.Response {
		return dunlin.Empty().With(varyBlock).AddHeader("Vary", "Origin").
			Cookie(&http.Cookie{Name: "a", Value: "1"}).Cookie(&http.Cookie{Name: "b", Value: "2", HttpOnly: true})
	})
	answer("/block", func() dunlin.Response { return dunlin.Text("hello world!").With(cachedBlock) })
	answer("/blocks", func() dunlin.Response {
		return dunlin.Text("x").With(cachedBlock).With(xBlock).Header("X-A", "1").AddHeader("X-A", "2").Cache(0)
	})
	answer("/padded", func() dunlin.Response { return dunlin.Empty().Header("X-Pad", "  padded\t").Header("X-Empty", "") })
	answer("/big", func() dunlin.Response { return dunlin.JSON(strings.Repeat("0123456789abcdef", 6400)) })
}

// stdHandler is a typical standard handler.
func stdHandler() http.Handler {
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
