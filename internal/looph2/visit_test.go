package looph2_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// If a connection sends many requests at once, whose actions are slow but do not block, other connections of its loop do not
// wait for all of them. Each request is answered.
func TestManySlowStreamsDoNotDelayOthers(t *testing.T) {
	onLoop(t)
	const streams = 100
	var (
		asked   atomic.Bool  // the others have sent their requests
		since   atomic.Int64 // slow actions that have begun since then
		most    atomic.Int64 // the number of these when a request of another connection was served
		served  atomic.Int64
		others  []*h2Conn
		ask     func()
		perLoop = 6
	)
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s")) // on a unix socket, sent bytes arrive at once
	if err != nil {
		t.Fatal(err)
	}
	startH2On(t, ln, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/first", func(*dunlin.Request) dunlin.Response {
			ask()
			asked.Store(true)
			return dunlin.Text("first")
		})
		app.Get("/slow", func(*dunlin.Request) dunlin.Response {
			if asked.Load() {
				since.Add(1)
			}
			for began := time.Now(); time.Since(began) < 300*time.Microsecond; {
			}
			return dunlin.Text("slow")
		})
		app.Get("/other", func(*dunlin.Request) dunlin.Response {
			for n := since.Load(); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			served.Add(1)
			return dunlin.Text("other")
		})
	})
	for range perLoop * runtime.GOMAXPROCS(0) {
		others = append(others, dialUnix(t, ln))
	}
	// On a busy machine, an action may be mistaken for one that blocks, and the other connections continue elsewhere meanwhile.
	const rounds = 20
	for round := range uint32(rounds) {
		asked.Store(false)
		for _, n := range []*atomic.Int64{&since, &most, &served} {
			n.Store(0)
		}
		ask = func() {
			for _, c := range others {
				c.request(2*round+1, true, "GET", "/other")
			}
		}
		c := dialUnix(t, ln)
		at := c.Conn
		var all written
		c.Conn = &all
		c.request(1, true, "GET", "/first")
		for i := range uint32(streams - 1) {
			c.request(2*i+3, true, "GET", "/slow")
		}
		if c.Conn = at; !write(c, all.Bytes()) {
			t.Fatal("the requests cannot be sent")
		}
		for range streams {
			c.wantFrame(frameHeaders)
		}
		for _, o := range others {
			o.wantFrame(frameHeaders)
		}
		_ = c.Close()
		if n := most.Load(); n <= streams/2 {
			return
		} else if round == rounds-1 {
			t.Errorf("others were served when %d of %d slow streams had been", n, streams)
		}
	}
}

// A written is a connection that collects the bytes written to it.
type written struct {
	net.Conn
	bytes.Buffer
}

func (w *written) Read(b []byte) (int, error)  { return w.Buffer.Read(b) }
func (w *written) Write(b []byte) (int, error) { return w.Buffer.Write(b) }

func write(w io.Writer, b []byte) bool {
	n, err := w.Write(b)
	return n == len(b) && err == nil
}

func dialUnix(t *testing.T, ln net.Listener) *h2Conn {
	t.Helper()
	conn, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &h2Conn{conn, t}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	_ = c.frame(frameSettings, 0, 0)
	c.wantFrame(frameSettings)
	return c
}
