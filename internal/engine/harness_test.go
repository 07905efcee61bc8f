//go:build linux

package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// lineHandler serves a protocol of lines: the answer to "command arguments
// " is one line, so that every answer can be checked against its request.
type lineHandler struct {
	commands map[string]command

	opened     sync.Map                 // *engine.Conn → number of calls of Closed
	limits     map[string]time.Duration // commands under a limit
	gone       atomic.Int32             // number of calls that were too late
	closed     atomic.Int32
	data       atomic.Int32 // number of calls of Data
	overdue    atomic.Int32 // number of overdue requests
	collected  atomic.Int32 // number of takeovers during a garbage collection
	eofs       chan string  // kept input at EOF
	detached   sync.Map     // *engine.Conn → arguments of its command that continues in the background
	background command      // the command in the background; nil: it answers its arguments
	timeout    func(d *engine.Driver, c *engine.Conn)
}

type command func(d *engine.Driver, c *engine.Conn, args string)

func newLineHandler() *lineHandler {
	return &lineHandler{
		commands: map[string]command{
			"echo":  func(d *engine.Driver, _ *engine.Conn, args string) { answer(d, args) },
			"big":   func(d *engine.Driver, _ *engine.Conn, args string) { answer(d, pattern(args)) },
			"close": func(d *engine.Driver, c *engine.Conn, args string) { answer(d, args); c.CloseAfterFlush() },
		},
		eofs: make(chan string, 1000),
	}
}

// numbers is a text in which every position differs from its neighbours.
var numbers = sync.OnceValue(func() string {
	var b []byte
	for i := int64(0); len(b) < 20_000_000; i++ {
		b = append(strconv.AppendInt(b, i, 10), ',')
	}
	return string(b)
})

// pattern returns n bytes that depend on their position.
func pattern(n string) string {
	size, err := strconv.Atoi(n)
	if err != nil {
		panic(err)
	}
	return numbers()[:size]
}

func answer(d *engine.Driver, line string) {
	d.Out = append(append(d.Out, line...), '\n')
}

func (h *lineHandler) NewScratch() engine.Scratch { return &scratch{h: h} }

// A scratch counts its uses: a race if drivers ever share it.
type scratch struct {
	h    *lineHandler
	uses int
}

func (s *scratch) Detached(collected bool) bool {
	if collected {
		s.h.collected.Add(1)
	}
	return true
}

func (*scratch) Expiring(engine.Scratch) {}

func (h *lineHandler) Data(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	h.data.Add(1)
	c.Notes |= engine.Begun // set in each call: loops do not read the notes of connections that are away
	h.opened.LoadOrStore(c, new(atomic.Int32))
	d.Scratch.(*scratch).uses++ // a race if drivers ever share a scratch
	for {
		i := bytes.IndexByte(in[consumed:], '\n')
		if i < 0 {
			return consumed
		}
		line := string(in[consumed : consumed+i])
		if rest, hand := strings.CutPrefix(line, "hand "); hand {
			if d.Overdue() {
				h.overdue.Add(1)
				answer(d, "overdue")
				consumed += i + 1
				continue
			}
			if d.Inline() {
				d.HandOff()
				return consumed
			}
			line = rest
		}
		if rest, hand := strings.CutPrefix(line, "first "); hand {
			if d.Inline() {
				d.HandOffFirst()
				return consumed
			}
			line = rest
		}
		consumed += i + 1
		name, args, _ := strings.Cut(line, " ")
		if name == "background" {
			h.detached.Store(c, args)
			d.Background()
			return consumed
		}
		run := h.commands[name]
		if run == nil {
			answer(d, "unknown command "+name)
			c.CloseLingering()
			return consumed
		}
		if limit, limited := h.limits[name]; limited {
			// Such a command answers after Leave: Out does not belong to it before.
			d.EnterFor(limit)
			run(d, c, args)
			d.Leave()
			if d.Expired() {
				h.gone.Add(1)
				return 0
			}
			answer(d, args)
			continue
		}
		d.Enter()
		run(d, c, args)
		d.Leave()
		if name == "close" {
			return consumed
		}
		if len(d.Out) > 64<<10 {
			d.Again()
			return consumed
		}
	}
}

func (h *lineHandler) EOF(d *engine.Driver, c *engine.Conn, in []byte) {
	select {
	case h.eofs <- string(in):
	default:
	}
	if len(in) > 0 {
		answer(d, "incomplete")
	}
}

func (h *lineHandler) Timeout(d *engine.Driver, c *engine.Conn, in []byte) {
	if h.timeout != nil {
		h.timeout(d, c)
		return
	}
	answer(d, "timeout")
}

func (h *lineHandler) Background(d *engine.Driver, c *engine.Conn) {
	args, asked := h.detached.LoadAndDelete(c)
	switch {
	case !asked:
		answer(d, "nobody asked for this")
	case h.background != nil:
		h.background(d, c, args.(string))
	default:
		answer(d, args.(string))
	}
}

func (h *lineHandler) Expired(d *engine.Driver, c *engine.Conn) {
	answer(d, "too late")
}

func (h *lineHandler) Refused(d *engine.Driver, c *engine.Conn, in []byte) {
	answer(d, "refused")
}

func (h *lineHandler) Pended(*engine.Driver, int64) {}

func (h *lineHandler) Abandoned(d *engine.Driver, c *engine.Conn, cause any) {
	answer(d, fmt.Sprint("abandoned ", cause))
}

func (h *lineHandler) Closed(c *engine.Conn) {
	h.closed.Add(1)
	if n, ok := h.opened.Load(c); ok {
		n.(*atomic.Int32).Add(1)
	}
}

// server is an engine with a listener, closed and checked at the end of the test.
type server struct {
	*engine.Engine
	t    testing.TB
	addr net.Addr
}

func serve(t testing.TB, cfg engine.Config, h engine.Handler) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, cfg, h, ln)
}

func serveUnix(t testing.TB, cfg engine.Config, h engine.Handler) *server {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, cfg, h, ln)
}

// onEachListener runs f with listeners of TCP, and of Multipath TCP, which is the default of package net.
func onEachListener(t *testing.T, f func(t *testing.T, listen func(*testing.T) net.Listener)) {
	for _, multipath := range []bool{false, true} {
		t.Run(fmt.Sprint("multipath ", multipath), func(t *testing.T) {
			var config net.ListenConfig
			config.SetMultipathTCP(multipath)
			f(t, func(t *testing.T) net.Listener {
				t.Helper()
				ln, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				return ln
			})
		})
	}
}

func serveOn(t testing.TB, cfg engine.Config, h engine.Handler, ln net.Listener) *server {
	t.Helper()
	return serveBy(t, cfg, h, ln, func(e *engine.Engine) error { return e.Serve(ln) })
}

func serveBy(t testing.TB, cfg engine.Config, h engine.Handler, ln net.Listener, by func(*engine.Engine) error) *server {
	t.Helper()
	if cfg.Budget == nil {
		cfg.Budget = memory.New(0)
	}
	before := runtime.NumGoroutine()
	e, err := engine.New(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- by(e) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != net.ErrClosed {
			t.Errorf("Serve returned %v, want net.ErrClosed", err)
		}
		eventually(t, "all of the engine's goroutines have ended", func() bool {
			return runtime.NumGoroutine() <= before
		})
		if s := e.Stats(); s.Conns != 0 || s.PendingBytes != 0 || s.Away != 0 {
			t.Errorf("left behind after shutdown: got %+v", s)
		}
		for u := range memory.Uses { // late calls may still run
			eventually(t, fmt.Sprintf("the budget holds nothing for %v", u), func() bool { return cfg.Budget.HeldFor(u) == 0 })
		}
		if lh, ok := h.(*lineHandler); ok {
			lh.opened.Range(func(_, n any) bool {
				if got := n.(*atomic.Int32).Load(); got != 1 {
					t.Errorf("Closed was called %d times for a connection, want once", got)
				}
				return true
			})
		}
	})
	return &server{e, t, ln.Addr()}
}

// eventually waits for an event on another goroutine that cannot be observed in another way. The time limit is reached only
// when the test fails.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(limit) {
			buf := make([]byte, 1<<20)
			t.Fatalf("never happened: got %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// client is a connection to a server of lines.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// closeWrite closes the sending side.
func (c *client) closeWrite() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

func (s *server) dial() *client {
	s.t.Helper()
	conn, err := net.Dial(s.addr.Network(), s.addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	c := &client{conn, s.t, bufio.NewReader(conn)}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *client) want(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		got, err := c.r.ReadString('\n')
		if err != nil || got != line+"\n" {
			c.t.Fatalf("got %.80q, %v; want %.80q", got, err, line)
		}
	}
}

// wantBoth expects two lines in any order.
func (c *client) wantBoth(a, b string) {
	c.t.Helper()
	if first, err := c.r.Peek(len(b) + 1); err == nil && string(first) == b+"\n" {
		a, b = b, a
	}
	c.want(a, b)
}

func (c *client) wantEOF() {
	c.t.Helper()
	if rest, err := c.r.ReadString(0); err == nil || err.Error() != "EOF" || rest != "" {
		c.t.Fatalf("got %.80q, %v; want the end of the stream", rest, err)
	}
}

// gate holds handlers until it is opened.
type gate struct {
	entered chan struct{}
	open    chan struct{}
}

func newGate(h *lineHandler) *gate {
	g := &gate{make(chan struct{}, 1000), make(chan struct{})}
	h.commands["block"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		g.entered <- struct{}{}
		<-g.open
		answer(d, args)
	}
	return g
}
