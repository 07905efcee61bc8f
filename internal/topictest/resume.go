// Package topictest has the tests of topics that are shared over a store, for every store.
package topictest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/topic"
)

// A Backplane is a store that connects processes.
type Backplane struct {
	Store func(t *testing.T) store.Store // for one process
	// Stop makes the store unavailable, and Start makes it available again, without its state.
	Stop, Start func(t *testing.T)
}

// A node is a process that shares the topic x.
type node struct {
	topic topic.Topic
	addr  string
}

// A stream is an event stream of a node.
type stream struct {
	t     *testing.T
	body  *bufio.Scanner
	close func()
}

// open opens a stream that continues after an ID, or begins with "".
func (n *node) open(t *testing.T, last string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+n.addr+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return &stream{t, bufio.NewScanner(resp.Body), func() { cancel(); _ = resp.Body.Close() }}
}

// next returns the ID and the data of the next event. The data of a position is "at", and that of a loss "resync".
func (s *stream) next() (id, data string) {
	s.t.Helper()
	data = "at"
	for s.body.Scan() {
		name, value, _ := strings.Cut(s.body.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event" && value == "resync":
			data = value
		case name == "data" && data != "resync":
			data = value
		case name == "" && id != "":
			return id, data
		}
	}
	s.t.Fatal("the stream ended: ", s.body.Err())
	return
}

// expect returns the ID of the next event, which must have this data.
func (s *stream) expect(data string) (id string) {
	s.t.Helper()
	id, got := s.next()
	if got != data {
		s.t.Fatalf("got %q, want %q", got, data)
	}
	return id
}

// await reads up to an event with this data.
func (s *stream) await(data string) {
	s.t.Helper()
	for got := ""; got != data; {
		_, got = s.next()
	}
}

func (n *node) publish(t *testing.T, data string) {
	t.Helper()
	if err := n.topic.Publish([]byte(data)); err != nil {
		t.Fatal(err)
	}
}

// Resume tests that clients of two processes get each message once. Each of its cases is a known failure of other libraries.
func Resume(t *testing.T, plane Backplane) {
	t.Helper()
	for name, f := range map[string]func(t *testing.T, a, b *node){
		"no message received yet": func(t *testing.T, a, _ *node) {
			s := a.open(t, "")
			id := s.expect("at")
			s.close()
			a.publish(t, "1")
			s = a.open(t, id)
			s.expect("at")
			s.expect("1")
		},
		"reconnect too fast": func(t *testing.T, a, b *node) {
			old, witness := a.open(t, ""), b.open(t, "")
			old.expect("at")
			witness.expect("at")
			a.publish(t, "1")
			id := old.expect("1")
			witness.expect("1")
			for i, n := range []*node{a, b} { // while the old connection is open
				s := n.open(t, id)
				if at := s.expect("at"); at != id {
					t.Errorf("process %d continues at %s, want %s", i, at, id)
				}
				n.publish(t, fmt.Sprint("next ", i))
				id = s.expect(fmt.Sprint("next ", i))
				old.expect(fmt.Sprint("next ", i))
				witness.expect(fmt.Sprint("next ", i))
			}
		},
		"other node": func(t *testing.T, a, b *node) {
			s, witness := a.open(t, ""), b.open(t, "")
			s.expect("at")
			witness.expect("at")
			a.publish(t, "1")
			id := s.expect("1")
			s.close()
			a.publish(t, "2")
			b.publish(t, "3")
			for _, data := range []string{"1", "2", "3"} {
				witness.expect(data)
			}
			s = b.open(t, id)
			s.expect("at")
			s.expect("2")
			s.expect("3")
		},
		"second time offline": func(t *testing.T, a, b *node) {
			s, inA, inB := a.open(t, ""), a.open(t, ""), b.open(t, "")
			id := s.expect("at")
			inA.expect("at")
			inB.expect("at")
			for i := range 6 {
				s.close()
				n := []*node{a, b}[i/2%2] // twice to the same process
				data := fmt.Sprint("round ", i)
				n.publish(t, data)
				inA.expect(data)
				inB.expect(data)
				s = n.open(t, id)
				s.expect("at")
				id = s.expect(data)
			}
		},
		"backplane restarted": func(t *testing.T, a, b *node) {
			all := []*stream{a.open(t, ""), b.open(t, "")}
			for _, s := range all {
				s.expect("at")
			}
			a.publish(t, "before")
			var id string
			for _, s := range all {
				id = s.expect("before")
			}
			plane.Stop(t)
			if err := a.topic.Publish([]byte("lost")); err == nil {
				t.Error("a message is accepted while the store is unavailable")
			}
			plane.Start(t)
			// A refused message makes all begin anew, with the next one of its sender. Messages are lost until the subscriptions are renewed.
			resynced, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for {
					_, _ = a.topic.Publish([]byte("again")), b.topic.Publish([]byte("again"))
					select {
					case <-tick.C:
					case <-resynced:
						return
					}
				}
			}()
			stop := sync.OnceFunc(func() { close(resynced); <-stopped })
			defer stop()
			for i, n := range []*node{a, b} {
				all[i].await("resync")
				all[i].await("again")
				all[i].close()
				s := n.open(t, id)
				s.expect("resync") // it is of before the loss
				s.await("again")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
				engine := dunlin.EngineLoop
				if strings.HasSuffix(t.Name(), "/std") {
					engine = dunlin.EngineStd
				}
				start := func(app *dunlin.App) *node {
					hub := topic.New(app, topic.Settings{})
					if err := hub.Share(t.Context(), plane.Store(t), t.Name()); err != nil {
						t.Fatal(err)
					}
					n := &node{topic: hub.Topic("x")}
					app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, n.topic) })
					n.addr = dunlintest.Serve(t, app)
					return n
				}
				f(t, start(app), start(dunlin.New(dunlin.Config{Engine: engine})))
			})
		})
	}
}
