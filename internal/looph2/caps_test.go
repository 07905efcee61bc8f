package looph2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Config.Limits.MaxMemoryPerConnection bounds the memory of all streams of a connection together: a body that does not fit
// together with another is refused at once, and other connections are not affected.
func TestMaxMemoryPerConnectionOfStreams(t *testing.T) {
	onLoop(t)
	const size = 600 << 10
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxMemoryPerConnection: 700 << 10}}, func(app *dunlin.App) {
		app.Post("/length", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body)))
		})
	})
	half := func(client *http.Client, bodies int64) (finish func() (int, string)) { // the bodies are held then
		r, w := io.Pipe()
		req, err := http.NewRequest("POST", "http://"+s.addr+"/length", r)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = size
		type answer struct {
			status int
			body   string
		}
		answers := make(chan answer, 1)
		go func() {
			status, body := (&h2Server{Client: client}).ask(req, nil)
			answers <- answer{status, body}
		}()
		if _, err := w.Write(make([]byte, size-1)); err != nil {
			t.Fatal(err)
		}
		soon(t, "the body is held", func() bool { return s.app.Stats().Memory.HeldFor["body"] >= bodies*size })
		return func() (int, string) {
			_, _ = w.Write([]byte("x"))
			_ = w.Close()
			a := <-answers
			return a.status, a.body
		}
	}
	first := half(s.Client, 1)
	status, body := s.post("/length", bytes.NewReader(make([]byte, size)))
	want(t, status, body, 503, "the connection is at its memory limit")
	other := &http.Transport{Protocols: new(http.Protocols)}
	other.Protocols.SetUnencryptedHTTP2(true)
	defer other.CloseIdleConnections()
	second := half(&http.Client{Transport: other}, 2)
	for _, finish := range []func() (int, string){first, second} {
		status, body := finish()
		want(t, status, body, 200, fmt.Sprint(size))
	}
	if n := s.app.Stats().Shed["memory-cap"]; n != 1 {
		t.Errorf("%d counted as memory-cap, want 1", n)
	}
	status, body = s.post("/length", bytes.NewReader(make([]byte, 800<<10)))
	want(t, status, body, 413, "")
}

// The dynamic tables of connections are charged to the budget, and freed when the connections end.
func TestDynamicTablesAreCharged(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("root") })
	})
	const n = 20
	var conns []*h2Conn
	for range n {
		c := newH2Conn(t, s.addr)
		block := []byte{0x82, 0x86, 0x84}
		block = append(block, field(nil, ":authority", "h.example")...)
		for i := range 8 {
			entry := field(nil, fmt.Sprint("name-", i), strings.Repeat("v", 110))
			entry[0] = 0x40 // it enters the table
			block = append(block, entry...)
		}
		_ = c.frame(frameHeaders, 5, 1, block...)
		conns = append(conns, c)
	}
	soon(t, "they are held", func() bool { return s.app.Stats().Memory.HeldFor["input"] >= n*900 })
	for _, c := range conns {
		_ = c.Close()
	}
	s.wantNothingHeld()
}
