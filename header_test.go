package dunlin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

var (
	cachedBlock = dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30")
	varyBlock   = dunlin.NewHeaderBlock("Vary", "Accept")
)

// unsendable lists headers that must never be sent, with the message in the log or panic.
var unsendable = []struct{ name, value, why string }{
	{"", "x", "empty name"},
	{"X-A", "a\r\nSet-Cookie: b=c", `byte '\r' at offset 1`},
	{"X-A", "a\nb", `byte '\n' at offset 1`},
	{"X-A", "a\rb", `byte '\r' at offset 1`},
	{"X-A", "a\x00b", `byte '\x00' at offset 1`},
	{"X-A", "a\x7f", `byte '\x7f' at offset 1`},
	{"X-A", "\n", `byte '\n' at offset 0`},
	{"X-A\r\nX-B", "x", `byte '\r' at offset 3`},
	{"X A", "x", `byte ' ' at offset 1`},
	{"X:A", "x", `byte ':' at offset 1`},
	{"X\x00", "x", `byte '\x00' at offset 1`},
	{"é", "x", "is not allowed in a name"},
	{"Content-Length", "5", "counted from the body"},
	{"content-length", "5", "counted from the body"},
	{"CONTENT-LENGTH", "5", "counted from the body"},
	{"Transfer-Encoding", "chunked", "how the body is sent"},
	{"transfer-encodinG", "chunked", "how the body is sent"},
	{"Connection", "close", "belongs to the connection"},
	{"cOnNeCtIoN", "x", "belongs to the connection"},
	{"keep-alive", "x", "belongs to the connection"},
	{"upgrade", "x", "belongs to the connection"},
	{"TRAILER", "x", "how the body is sent"},
	{"date", "x", "not an HTTP date"},
}

func TestUnsendableHeaders(t *testing.T) {
	for _, c := range unsendable {
		for how, build := range map[string]func() dunlin.Response{
			"Header":    func() dunlin.Response { return dunlin.Text("body").Header(c.name, c.value) },
			"AddHeader": func() dunlin.Response { return dunlin.JSON("body").Header("X-Before", "1").AddHeader(c.name, c.value) },
		} {
			w, logged := respondWith(t, build)
			if w.Code != 500 || strings.Contains(w.Body.String(), "body") || len(w.Header()) != 2 {
				t.Errorf("%s(%q, %q): got %d %v %s", how, c.name, c.value, w.Code, w.Header(), w.Body)
			}
			wantContains(t, "log", strings.ReplaceAll(logged, `\\`, `\`), c.why)
		}
		text := panicText(func() { dunlin.NewHeaderBlock("X-Good", "1", c.name, c.value) })
		wantContains(t, "panic of NewHeaderBlock", text, "dunlin: NewHeaderBlock: ", c.why)
	}
	for how, build := range map[string]func() dunlin.Response{
		"Redirect": func() dunlin.Response { return dunlin.Redirect("/a\r\nSet-Cookie: b=c") },
		"Created":  func() dunlin.Response { return dunlin.Created("/a\nb") },
		"Bytes":    func() dunlin.Response { return dunlin.Bytes("text/x\r\nX: y", []byte("b")) },
	} {
		if w, _ := respondWith(t, build); w.Code != 500 || len(w.Header()) != 2 {
			t.Errorf("%s: got %d %v", how, w.Code, w.Header())
		}
	}
}

func TestSendableHeaders(t *testing.T) {
	for _, value := range []string{"", "plain", "tab\tinside", "é in UTF-8", "\x80\xff bytes", `"quoted", list`, strings.Repeat("long ", 1000) + "."} {
		w, logged := respondWith(t, func() dunlin.Response {
			return dunlin.Text("").Header("X-!#$%&'*+.^_`|~1", value).With(dunlin.NewHeaderBlock("X-B", value))
		})
		if got := w.Header()["X-B"]; w.Code != 200 || len(got) != 1 || got[0] != value {
			t.Errorf("%q: got %d %q, %s", value, w.Code, got, logged)
		}
	}
	w, _ := respondWith(t, func() dunlin.Response { return dunlin.Text("").Header("x-lower", " \tpadded ") })
	if got := w.Header()["X-Lower"]; len(got) != 1 || got[0] != "padded" {
		t.Errorf("padded value of a lower-case name: got %q", w.Header())
	}
}

func TestHeaderBlock(t *testing.T) {
	b := dunlin.NewHeaderBlock("vary", "Accept", "X-A", "1", "Vary", " Origin ", "X-Empty", "")
	if got, want := b.String(), "Vary: Accept\r\nX-A: 1\r\nVary: Origin\r\nX-Empty: \r\n"; got != want {
		t.Errorf("String(): got %q, want %q", got, want)
	}
	for name, want := range map[string]string{"Vary": "Accept", "VARY": "Accept", "x-a": "1", "X-Empty": "", "X-None": "", "": ""} {
		if got := b.Get(name); got != want {
			t.Errorf("Get(%q): got %q, want %q", name, got, want)
		}
	}
	var none *dunlin.HeaderBlock
	if none.String() != "" || none.Get("X") != "" {
		t.Error("nil block: got a field")
	}
	if w, _ := respondWith(t, func() dunlin.Response { return dunlin.Text("x").With(nil).With(dunlin.NewHeaderBlock()) }); w.Code != 200 || w.Header().Get("Content-Type") == "" {
		t.Errorf("nil and empty blocks: got %d %v", w.Code, w.Header())
	}
	odd := []string{"X-A", "1", "X-B"}
	wantContains(t, "panic", panicText(func() { dunlin.NewHeaderBlock(odd...) }), "3 strings are not pairs", `"X-B"`)
}

func TestNestedHeaderBlocks(t *testing.T) {
	one := dunlin.NewHeaderBlock("X-A", "1", "X-B", "1", "X-B", "1b")
	two := dunlin.NewHeaderBlock("X-B", "2", "X-C", "2")
	for _, c := range []struct {
		name string
		r    dunlin.Response
		want string
	}{
		{"one", dunlin.Text("").With(one), "A=[1] B=[1 1b] C=[] text/plain; charset=utf-8"},
		{"two on one", dunlin.Text("").With(one).With(two), "A=[1] B=[2] C=[2] text/plain; charset=utf-8"},
		{"one on two", dunlin.Text("").With(two).With(one), "A=[1] B=[1 1b] C=[2] text/plain; charset=utf-8"},
		{"twice", dunlin.Text("").With(one).With(one), "A=[1] B=[1 1b] C=[] text/plain; charset=utf-8"},
		{"on nothing", dunlin.Empty().With(one), "A=[1] B=[1 1b] C=[] "},
		{"media type", dunlin.JSON(1).With(cachedBlock).With(one), "A=[1] B=[1 1b] C=[] text/plain"},
		{"on a header", dunlin.Text("").Header("X-B", "0").With(one), "A=[1] B=[1 1b] C=[] text/plain; charset=utf-8"},
		{"below a header", dunlin.Text("").With(one).Header("x-b", "0"), "A=[1] B=[0] C=[] text/plain; charset=utf-8"},
		{"below an added one", dunlin.Text("").With(one).AddHeader("x-b", "0"), "A=[1] B=[1 1b 0] C=[] text/plain; charset=utf-8"},
	} {
		read := fmt.Sprintf("A=%v B=%v C=%v %s", c.r.Values("X-A"), c.r.Values("X-B"), c.r.Values("X-C"), c.r.Get("Content-Type"))
		w, _ := respondWith(t, func() dunlin.Response { return c.r })
		h := w.Header()
		sent := fmt.Sprintf("A=%v B=%v C=%v %s", h["X-A"], h["X-B"], h["X-C"], h.Get("Content-Type"))
		if read != c.want || sent != c.want {
			t.Errorf("%s: got %s from the response and %s from the server, want %s", c.name, read, sent, c.want)
		}
	}
	for i := range 100 { // more fields than a pooled response retains
		r := dunlin.Text("").With(dunlin.NewHeaderBlock("X-A", fmt.Sprint(i))).With(two)
		if r.Get("X-A") != fmt.Sprint(i) || r.Get("X-B") != "2" {
			t.Fatalf("block %d: got %v", i, r.Get("X-A"))
		}
	}
}

// All responses share the value slices of a block. Standard middleware that appends to the header map must not change them. Run
// with -race.
func TestHeaderBlockShared(t *testing.T) {
	block := dunlin.NewHeaderBlock("Vary", "Accept", "Content-Type", "text/plain", "X-A", "1")
	app, _ := newApp(dunlin.Config{})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").With(block) })
	app.Get("/added", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text("hello").With(block).AddHeader("Vary", "Origin")
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		app.ServeHTTP(&appendingWriter{w}, r)
	}))
	defer server.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 40 {
				for target, want := range map[string]string{"/": "[Accept Appended]", "/added": "[Accept Origin Appended]"} {
					resp, err := server.Client().Get(server.URL + target)
					if err != nil {
						t.Error(err)
						return
					}
					_ = resp.Body.Close()
					if got := fmt.Sprint(resp.Header["Vary"]); got != want {
						t.Errorf("%s: got Vary %s, want %s", target, got, want)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := block.String(); got != "Vary: Accept\r\nContent-Type: text/plain\r\nX-A: 1\r\n" {
		t.Errorf("the block has become %q", got)
	}
}

// appendingWriter appends a value to every header, as compressing middleware does.
type appendingWriter struct{ http.ResponseWriter }

func (w *appendingWriter) WriteHeader(status int) {
	for name := range w.Header() {
		w.Header().Add(name, "Appended")
	}
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}
