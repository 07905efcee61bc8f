package suite

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Pairs of slow clients download bodies that the program or its cache of responses holds: one larger than the budget, and two that
// fill it. Requests of other clients that arrive in pieces are served, at once and after these clients count as slow.
func TestSlowReadersOfSharedBodiesDoNotBlockOthers(t *testing.T) {
	for _, test := range []struct {
		name   string
		sizes  []int
		cached bool
	}{
		{name: "larger than the budget", sizes: []int{20 << 20}},
		{name: "the budget", sizes: []int{7 << 20, 7 << 20}},
		{name: "cached, larger than the budget", sizes: []int{20 << 20}, cached: true},
		{name: "cached, the budget", sizes: []int{7 << 20, 7 << 20}, cached: true},
	} {
		sizes := test.sizes
		t.Run(test.name, func(t *testing.T) {
			onLoopAndTLS(t, func(t *testing.T) {
				app, addr := startShared(t, sizes, test.cached)
				var readers []*bufio.Reader
				for i := range 2 * len(sizes) {
					c := Dial(t, addr)
					if err := TCP(c).SetReadBuffer(4 << 10); err != nil {
						t.Fatal(err)
					}
					Send(t, c, Request(fmt.Sprint("GET /shared/", i/2)))
					readers = append(readers, bufio.NewReaderSize(c, 512))
				}
				// In a large test binary the budget is smaller than the bodies: then some clients are evicted at once.
				Soon(t, "all answers wait", func() bool {
					s := app.Stats()
					return s.Memory.ReadPaused+int(s.Shed["largest-holder"]) >= len(readers)
				})
				for round := range 2 {
					for range 12 {
						if got := askInPieces(t, app, addr); !strings.HasSuffix(got, "\n\n50000") {
							t.Errorf("round %d: got %s", round, Clip(got))
						}
					}
					for _, r := range readers {
						_, _ = r.Discard(512) // the client may be evicted
					}
					Soon(t, "the readers count as slow", func() bool {
						m := app.Stats().Memory
						return len(m.Largest) == 0 || m.Largest[0].For > 700*time.Millisecond
					})
				}
				s := app.Stats()
				larger := int64(0) // one answer may be larger than the budget, also the one that the cache has not stored
				if test.cached && len(sizes) == 1 {
					larger = int64(sizes[0])
				}
				if m := s.Memory; m.Held > m.Budget+m.Budget/8+larger {
					t.Errorf("%d bytes are held of %d", m.Held, m.Budget)
				}
				if n := s.Shed["largest-holder"]; n > 0 && len(sizes) == 1 && !test.cached {
					t.Errorf("%d are evicted, which frees nothing", n)
				}
			})
		})
	}
}

// startShared serves constant bodies of these sizes, or copies of them through a cache of responses, and a route that responds with
// the length of a body.
func startShared(t *testing.T, sizes []int, cached bool) (app *dunlin.App, addr string) {
	t.Helper()
	app, addr, _ = StartLoop(t, dunlin.Config{Limits: dunlin.Limits{Memory: 64 << 20}}, func(a *dunlin.App) {
		shared := a.Group("/shared")
		if cached {
			shared.Use(middleware.NewCache(middleware.CacheConfig{App: a, MaxBytes: 64 << 20, MaxEntry: 20 << 20}).Middleware())
		}
		for i, size := range sizes {
			text := make([]byte, size)
			shared.Get(fmt.Sprint("/", i), func(*dunlin.Request) dunlin.Response {
				if cached {
					return dunlin.Bytes("", slices.Clone(text)).CachePublic(time.Hour)
				}
				return dunlin.Bytes("", text)
			})
		}
		a.Post("/length", length)
	})
	return app, addr
}

// askInPieces sends a head and a body in two pieces each, from its own address, and returns the response.
func askInPieces(t *testing.T, app *dunlin.App, addr string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	c := overTLS(conn, addr)
	Send(t, c, "POST /length HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n")
	Soon(t, "the first piece of the head is kept, or refused", func() bool {
		s := app.Stats()
		return s.Memory.HeldFor["input"] > 0 || s.Shed["largest-holder"] > 0
	})
	Send(t, c, "Content-Length: 50000\r\n\r\n")
	br := bufio.NewReader(c)
	line, err := br.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		return fmt.Sprint(line, err)
	}
	if err := expectBlank(br); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := io.WriteString(c, strings.Repeat("x", 25_000)); err != nil {
			return err.Error()
		}
	}
	got, err := ReadAnswer(br, "POST")
	if err != nil {
		return err.Error()
	}
	return got
}
