package topictest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

// A Cluster starts processes that share a hub.
type Cluster struct {
	Start func(t *testing.T) Process
	// Cut makes the store unavailable, and Mend makes it available again, without its state.
	Cut, Mend func(t *testing.T)
	// Pass waits for several times topic.Settings.Lease, so that a test can show that nothing changes meanwhile. It is nil if that
	// would take too long.
	Pass func()
}

// A Process is a process that shares the keyed topic x.
type Process interface {
	Topic() topic.Topic
	// Join opens a connection and joins it to the topic as the member key, with the message "key=+". It returns a function that closes
	// the connection. The key is then deleted with the message "key".
	Join(t *testing.T, key string) (leave func())
	// Watch subscribes a client. It continues after the message with the ID last, or is a new subscriber if last is empty.
	Watch(t *testing.T, last string) Watch
	// Kill ends all communication with the other processes.
	Kill()
}

// A Watch returns the ID and the data of the next message. The data is "at" if only the client's position is
// announced, and "resync" if messages were lost.
type Watch func() (id, data string)

// A viewer builds the state of the topic from its messages.
type viewer struct {
	t       *testing.T
	next    Watch
	state   map[string]string
	count   map[string]int // number of received messages, by data
	last    string
	resyncs int
}

func view(t *testing.T, p Process) *viewer {
	t.Helper()
	v := &viewer{t: t, next: p.Watch(t, ""), state: map[string]string{}, count: map[string]int{}}
	v.step()
	return v
}

// step applies the next message and returns it.
func (v *viewer) step() string {
	v.t.Helper()
	id, data := v.next()
	v.last = id
	key, value, isValue := strings.Cut(data, "=")
	switch {
	case data == "at":
	case data == "resync":
		clear(v.state)
		v.resyncs++
	case isValue:
		v.state[key] = value
	default:
		delete(v.state, key)
	}
	v.count[data]++
	return data
}

// until applies messages up to one with this data.
func (v *viewer) until(data string) {
	v.t.Helper()
	for v.step() != data {
	}
}

// reach applies messages until the state is want, such as "a=1 b=2".
func (v *viewer) reach(want string) {
	v.t.Helper()
	wanted := map[string]string{}
	for _, word := range strings.Fields(want) {
		key, value, _ := strings.Cut(word, "=")
		wanted[key] = value
	}
	for !maps.Equal(v.state, wanted) {
		v.step()
	}
}

func put(t *testing.T, p Process, key, value string) {
	t.Helper()
	if err := p.Topic().Put(key, []byte(key+"="+value)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, p Process, key string) {
	t.Helper()
	if err := p.Topic().Delete(key, []byte(key)); err != nil {
		t.Fatal(err)
	}
}

// Keyed tests keyed topics and members that several processes share. run calls f with a new cluster.
func Keyed(t *testing.T, run func(t *testing.T, f func(t *testing.T, c Cluster))) {
	t.Helper()
	for name, f := range map[string]func(t *testing.T, c Cluster){
		"latest value": func(t *testing.T, c Cluster) {
			a, b := c.Start(t), c.Start(t)
			inA, inB := view(t, a), view(t, b)
			var wg sync.WaitGroup
			for n, p := range []Process{a, b} {
				wg.Go(func() {
					for i := range 60 {
						key := fmt.Sprint("k", i%7)
						if i%5 == n {
							_ = p.Topic().Delete(key, []byte(key))
						} else {
							_ = p.Topic().Put(key, fmt.Appendf(nil, "%s=%d/%d", key, n, i))
						}
					}
				})
			}
			wg.Wait()
			put(t, a, "end", "a")
			put(t, b, "end", "b")
			inA.until("end=b")
			inB.until("end=b")
			if !maps.Equal(inA.state, inB.state) {
				t.Errorf("one process has %v, the other %v", inA.state, inB.state)
			}
		},
		"later process": func(t *testing.T, c Cluster) {
			a, b := c.Start(t), c.Start(t)
			leave := a.Join(t, "m")
			put(t, a, "k", "1")
			put(t, b, "deleted", "1")
			remove(t, a, "deleted")
			view(t, b).reach("m=+ k=1")
			late := c.Start(t)
			inLate := view(t, late)
			inLate.reach("m=+ k=1")
			put(t, late, "k", "2")
			view(t, a).reach("m=+ k=2")
			leave()
			inLate.reach("k=2")
		},
		"member of two processes": func(t *testing.T, c Cluster) {
			a, b := c.Start(t), c.Start(t)
			all := []*viewer{view(t, a), view(t, b)}
			first, second, other := a.Join(t, "m"), a.Join(t, "m"), b.Join(t, "m")
			for n, leave := range []func(){first, other, second} {
				want := "m=+"
				if n > 0 {
					want += fmt.Sprint(" mark=", n)
				}
				for _, v := range all {
					v.reach(want)
				}
				leave()
				if n < 2 {
					put(t, b, "mark", fmt.Sprint(n+1))
				}
			}
			for _, v := range all {
				v.reach("mark=2")
				if v.count["m"] != 1 {
					t.Errorf("the member left %d times", v.count["m"])
				}
			}
		},
		"killed process": func(t *testing.T, c Cluster) {
			a, b, d := c.Start(t), c.Start(t), c.Start(t)
			a.Join(t, "alone")
			a.Join(t, "both")
			b.Join(t, "both")
			all := []*viewer{view(t, b), view(t, d)}
			for _, v := range all {
				v.reach("alone=+ both=+")
			}
			a.Kill()
			for _, v := range all {
				v.reach("both=+")
			}
			if c.Pass != nil {
				c.Pass()
			}
			put(t, b, "end", "b")
			put(t, d, "end", "d")
			for _, v := range all {
				v.until("end=d")
				if v.count["alone"] != 1 || v.count["both"] != 0 {
					t.Errorf("messages %v", v.count)
				}
			}
			if got := fmt.Sprint(b.Topic().Members(), d.Topic().Members()); got != "[both] [both]" {
				t.Errorf("members %s", got)
			}
		},
		"other process": func(t *testing.T, c Cluster) {
			a, b := c.Start(t), c.Start(t)
			old, witness := view(t, a), view(t, b)
			put(t, a, "k", "1")
			leave := b.Join(t, "m")
			old.reach("k=1 m=+")
			put(t, b, "k", "2")
			leave()
			witness.until("k=2")
			witness.until("m")
			next := b.Watch(t, old.last)
			for _, want := range []string{"at", "k=2", "m"} {
				if _, got := next(); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
		},
		"backplane restarted": func(t *testing.T, c Cluster) {
			a, b := c.Start(t), c.Start(t)
			inA, inB := view(t, a), view(t, b)
			put(t, a, "gone", "1")
			a.Join(t, "m")
			inB.reach("gone=1 m=+")
			c.Cut(t)
			if a.Topic().Put("k", []byte("k=lost")) == nil {
				t.Error("a message is accepted while the store is unavailable")
			}
			c.Mend(t)
			for a.Topic().Put("k", []byte("k=1")) != nil || b.Topic().Delete("gone", []byte("gone")) != nil {
			}
			b.Join(t, "n")
			for _, v := range []*viewer{inA, inB} {
				v.reach("k=1 m=+ n=+")
				if v.resyncs > 1 {
					t.Errorf("%d resyncs", v.resyncs)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, f) })
	}
}

// Serve returns a cluster of processes that serve their clients over the network.
func Serve(t *testing.T, plane Backplane) Cluster {
	name := t.Name()
	return Cluster{Cut: plane.Stop, Mend: plane.Start, Start: func(t *testing.T) Process {
		app := dunlin.New(dunlin.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		hub := topic.New(app, topic.Settings{Keyed: true, Lease: 3 * time.Second})
		if err := hub.Share(ctx, plane.Store(t), name); err != nil {
			t.Fatal(err)
		}
		n := &server{node{topic: hub.Topic("x")}, cancel}
		sockets := websocket.New(websocket.Options{Open: func(c *websocket.Conn) {
			key := c.Value().(string)
			if err := n.topic.Join(c, key, []byte(key+"=+"), []byte(key)); err != nil {
				t.Error(err)
			}
			_ = c.Send(websocket.Text, []byte("joined"))
		}})
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, n.topic) })
		app.Get("/join/{key}", func(r *dunlin.Request) dunlin.Response { return sockets.Accept(r, r.Param("key")) })
		n.addr = dunlintest.Serve(t, app)
		return n
	}}
}

// A server is a Process with a network address.
type server struct {
	node
	kill func()
}

func (s *server) Topic() topic.Topic { return s.topic }
func (s *server) Kill()              { s.kill() }

func (s *server) Watch(t *testing.T, last string) Watch {
	return s.open(t, last).next
}

func (s *server) Join(t *testing.T, key string) (leave func()) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, "GET /join/"+key+" HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the handshake was answered %v, %v", resp, err)
	}
	if _, err := io.ReadFull(r, make([]byte, len("..joined"))); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close() }
}
