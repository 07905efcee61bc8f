package looph2_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A corked collects writes until they are sent at once.
type corked struct {
	net.Conn
	b []byte
}

func (c *corked) Write(p []byte) (int, error) {
	c.b = append(c.b, p...)
	return len(p), nil
}

// A stream whose action ends its goroutine is reset, also if the action has lost the loop before, and all its memory is
// freed.
func TestGoexitAfterTakeover(t *testing.T) {
	onLoop(t)
	blocked := make(chan bool)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response {
			<-blocked
			return dunlin.SSE(func(*dunlin.Events) error { runtime.Goexit(); return nil })
		})
	})
	for range 2 { // the second runs on a worker
		c := newH2Conn(t, s.addr)
		c.request(1, true, "GET", "/")
		soon(t, "the action blocks elsewhere", func() bool { return s.app.Stats().Actions.InFlight > 0 })
		blocked <- true
		c.wantFrame(frameReset)
		s.wantNothingHeld()
	}
}

// An action that ends its goroutine, together with a feature that does so, affects no other stream of its connection: neither
// answers that are made already, nor requests that arrived together with it.
func TestGoexitOfFeatureKeepsOtherStreams(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Headers: func(i *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
			if i.Path() == "/exits" {
				runtime.Goexit()
			}
			return resp
		}})
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() })
		app.Get("/exits", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
	})
	c := newH2Conn(t, s.addr)
	together := &corked{Conn: c.Conn}
	c.Conn = together
	const last = 11
	for id := uint32(1); id <= last; id += 2 {
		path := "/quick"
		if id%4 == 3 {
			path = "/exits"
		}
		c.request(id, true, "GET", path)
	}
	c.Conn = together.Conn
	if _, err := c.Write(together.b); err != nil {
		t.Fatal(err)
	}
	for answered := map[uint32]bool{}; len(answered) < last/2+1; {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Fatalf("%v, after the answers %v", err, answered)
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[1])<<8|int64(head[2])); err != nil {
			t.Fatal(err)
		}
		if id := binary.BigEndian.Uint32(head[5:]); head[3] == frameHeaders {
			answered[id] = true
		}
	}
}

// A feature that blocks on the answer of an action which has ended its goroutine delays no other request, not even on its
// connection.
func TestBlockedFeatureAfterGoexit(t *testing.T) {
	onLoop(t)
	entered, release := make(chan bool), make(chan bool)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Headers: func(i *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
			if i.Path() == "/exits" {
				entered <- true
				<-release
			}
			return resp
		}})
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() })
		app.Get("/exits", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
	})
	c := newH2Conn(t, s.addr)
	for id := uint32(1); id < 40; id += 4 {
		c.request(id, true, "GET", "/exits")
		<-entered
		c.request(id+2, true, "GET", "/quick")
		c.wantFrame(frameHeaders)
		release <- true
		c.wantFrame(frameHeaders)
	}
}
