package topic_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
)

// An event is an event of a stream.
type event struct{ id, kind, data, retry string }

// A source is an event stream at a client.
type source struct {
	t    testing.TB
	body io.ReadCloser
	r    *bufio.Reader
}

// onStreams runs f on both engines. open opens the stream of topics at the path.
func onStreams(t *testing.T, s topic.Settings, f func(t *testing.T, app *dunlin.App, hub *topic.Hub, open func(path, last string) *source)) {
	t.Helper()
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, s)
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x"), hub.Topic("y")) })
		app.Get("/poll", func(r *dunlin.Request) dunlin.Response { return topic.Poll(r, hub.Topic("x")) })
		addr := dunlintest.Serve(t, app)
		f(t, app, hub, func(path, last string) *source { return listen(t, addr, path, last) })
	})
}

func listen(t testing.TB, addr, path, last string) *source {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("answered %s, %v", resp.Status, resp.Header)
	}
	return &source{t, resp.Body, bufio.NewReader(resp.Body)}
}

// next returns the next event.
func (s *source) next() (e event, err error) {
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		if line == "\n" {
			if e != (event{}) {
				return e, nil
			}
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data += value
		case "retry":
			e.retry = value
		}
	}
}

// expect expects an event with a type and data, and returns its ID.
func (s *source) expect(kind, data string) (id string) {
	s.t.Helper()
	e, err := s.next()
	if err != nil || e.kind != kind || e.data != data {
		s.t.Fatalf("got %+v, %v, want %s %s", e, err, kind, data)
	}
	return e.id
}

func (s *source) expectEnd() {
	s.t.Helper()
	if e, err := s.next(); err == nil {
		s.t.Fatalf("got %+v after the end", e)
	}
}

func TestEventStream(t *testing.T) {
	onStreams(t, topic.Settings{MaxMessages: 3}, func(t *testing.T, _ *dunlin.App, hub *topic.Hub, open func(path, last string) *source) {
		s := open("/events", "")
		first := s.expect("", "")
		publish(t, hub.Topic("x"), "one", "two")
		publish(t, hub.Topic("y"), "three")
		s.expect("x", "one")
		id := s.expect("x", "two")
		s.expect("y", "three")
		_ = s.body.Close()
		again := open("/events", id)
		if got := again.expect("", ""); got != id {
			t.Errorf("begins at %s, want %s", got, id)
		}
		again.expect("y", "three")
		byQuery := open("/events?last="+id, "")
		byQuery.expect("", "")
		byQuery.expect("y", "three")
		publish(t, hub.Topic("x"), "4", "5", "6") // the log drops one and two
		for _, last := range []string{first, "00000000-1", "nonsense"} {
			old := open("/events", last)
			old.expect("resync", "")
			publish(t, hub.Topic("x"), "live")
			old.expect("x", "live")
		}
	})
}

// A stream ends when the authorization of its client expires.
func TestEventsUntil(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		ends := time.Now()
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.EventsUntil(r, ends, hub.Topic("x")) })
		addr := dunlintest.Serve(t, app)
		for _, left := range []time.Duration{-time.Second, time.Millisecond, 50 * time.Millisecond} {
			ends = time.Now().Add(left)
			if rest, err := io.ReadAll(listen(t, addr, "/events", "").body); err != nil || strings.Contains(string(rest), "retry") {
				t.Errorf("the stream ended with %q, %v", rest, err)
			}
			within(t, "the subscription ends", func() bool { return hub.Stats().Subscribers == 0 })
		}
		ends = time.Now().Add(time.Hour)
		s := listen(t, addr, "/events", "")
		s.expect("", "")
		publish(t, hub.Topic("x"), "one")
		s.expect("x", "one")
	})
}

func TestPoll(t *testing.T) {
	onStreams(t, topic.Settings{}, func(t *testing.T, _ *dunlin.App, hub *topic.Hub, open func(path, last string) *source) {
		x := hub.Topic("x")
		s := open("/poll", "")
		id := s.expect("", "")
		s.expectEnd()
		publish(t, x, "one", "two")
		s = open("/poll", id)
		s.expect("", "")
		s.expect("x", "one")
		id = s.expect("x", "two")
		s.expectEnd()
		s = open("/poll", id)
		s.expect("", "") // the stream stays open
		publish(t, x, "three")
		s.expect("x", "three")
		s.expectEnd()
	})
}

// Streams that break at random positions and resume neither lose nor repeat a message.
func TestCutStreams(t *testing.T) {
	onStreams(t, topic.Settings{MaxMessages: 1 << 20, MaxBytes: 1 << 30}, func(t *testing.T, _ *dunlin.App, hub *topic.Hub, open func(path, last string) *source) {
		const messages, clients = 1000, 4
		var started, wg sync.WaitGroup
		started.Add(clients)
		for n := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 3))
				last, next := "", 0
				for next < messages {
					s := open("/events", last)
					for left := random.IntN(200); left >= 0 && next < messages; left-- {
						e, err := s.next()
						switch {
						case err != nil:
							t.Error(err)
							return
						case e.kind == "":
							if last == "" {
								started.Done()
							}
						case e.data != strconv.Itoa(next):
							t.Errorf("got %+v, want message %d", e, next)
							return
						default:
							next++
						}
						last = e.id
					}
					_ = s.body.Close()
				}
			})
		}
		started.Wait()
		for i := range messages {
			publish(t, hub.Topic(string('x'+rune(i%2))), strconv.Itoa(i))
		}
		wg.Wait()
	})
}

// On the loop engine a stream has no goroutine, ends when its client disconnects, and drops input.
func TestStreamsWithoutGoroutines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the loop engine")
	}
	const streams = 200
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	hub := topic.New(app, topic.Settings{})
	app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x")) })
	addr := dunlintest.Serve(t, app)
	var conns []net.Conn
	open := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprint(conn, "GET /events HTTP/1.1\r\nHost: h.example\r\n\r\nGET /pipelined HTTP/1.1\r\nHost: h.example\r\n\r\nnonsense")
		readUntil(t, conn, "id: ")
		return conn
	}
	_ = open()
	before := runtime.NumGoroutine()
	for range streams {
		conns = append(conns, open())
	}
	within(t, "no goroutine for a stream", func() bool { return runtime.NumGoroutine() < before+streams/2 })
	publish(t, hub.Topic("x"), "hello")
	for _, c := range conns {
		readUntil(t, c, "event: x\ndata: hello\n\n")
	}
	for _, c := range conns {
		_ = c.Close()
	}
	within(t, "streams end with their clients", func() bool { return hub.Stats().Subscribers == 1 })
}

// within waits for a condition.
func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("not so: " + what)
		}
	}
}

func readUntil(t *testing.T, conn net.Conn, end string) (all string) {
	t.Helper()
	b := make([]byte, 1)
	for !strings.HasSuffix(all, end) {
		if _, err := conn.Read(b); err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all += string(b)
	}
	return all
}

// A drain ends streams with a retry time, and WebSockets with 1001.
func TestDrain(t *testing.T) {
	onStreams(t, topic.Settings{Reconnect: time.Second}, func(t *testing.T, app *dunlin.App, hub *topic.Hub, open func(path, last string) *source) {
		s := open("/events", "")
		s.expect("", "")
		publish(t, hub.Topic("x"), "last")
		s.expect("x", "last")
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			done <- app.Shutdown(ctx)
		}()
		e, err := s.next()
		if ms, _ := strconv.Atoi(e.retry); err != nil || ms < 100 || ms >= 1100 {
			t.Errorf("got %+v, %v", e, err)
		}
		s.expectEnd()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// In a drain of many connections each WebSocket is closed with 1001, at once or later.
func TestDrainOfManySockets(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		open := sockets(t, app, hub)
		var all []*socket
		for range 200 {
			s := open()
			s.say("!subscribe - x")
			s.position("!at")
			all = append(all, s)
		}
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			done <- app.Shutdown(ctx)
		}()
		for _, s := range all {
			if got := s.hear(); got != "close 1001" {
				t.Errorf("got %q", got)
			}
			if _, err := s.Write([]byte{0x88, 0x80, 0, 0, 0, 0}); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := hub.Stats(); n.Subscribers != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// Over HTTP/2 a stream has a goroutine, and sends the same events.
func TestEventStreamOverHTTP2(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x")) })
		certs := httptest.NewTLSServer(nil) // it has a certificate
		defer certs.Close()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- app.ServeTLS(ln, &tls.Config{Certificates: certs.TLS.Certificates}) }()
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", "https://"+ln.Addr().String()+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
			t.Fatalf("answered %s %s", resp.Proto, resp.Status)
		}
		s := &source{t, resp.Body, bufio.NewReader(resp.Body)}
		s.expect("", "")
		publish(t, hub.Topic("x"), "one")
		s.expect("x", "one")
		publish(t, hub.Topic("x"), "two")
		s.expect("x", "two")
		go func() { _ = app.Shutdown(ctx) }()
		if e, err := s.next(); err != nil || e.retry == "" {
			t.Errorf("got %+v, %v", e, err)
		}
		s.expectEnd()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
