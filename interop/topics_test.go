package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

// topicsPage subscribes to two topics by WebSocket and by EventSource, and reports the messages of both when it has the last one.
const topicsPage = `<!doctype html><script type="module">
import { Topics } from "/topics.js"
const got = { socket: [], events: [], resyncs: 0, logins: 0, refused: [], own: [] }
const topics = new Topics("/socket", { window: 1e9, slowest: 100 })
topics.onexpired = () => new Promise(resolve => { got.logins++; setTimeout(resolve, 20) })
topics.onresync = () => got.resyncs++
topics.onmessage = text => got.own.push(text)
topics.onrefused = (topic, reason) => got.refused.push(topic + ": " + reason)
const report = () => {
	if (got.socket.at(-1) === "last" && got.events.at(-1) === "last")
		fetch("/report", { method: "POST", body: JSON.stringify(got) })
}
let begun = 0
const begin = () => { if (++begun === 2) fetch("/begin", { method: "POST" }) }
for (const topic of ["a", "b"])
	topics.subscribe(topic, text => { if (text === "first") begin(); else { got.socket.push(text); report() } })
topics.subscribe("secret", text => got.socket.push(text))
topics.onstate = open => { if (open && got.own.length === 0) topics.send("hello") }
const source = new EventSource("/events")
for (const topic of ["a", "b"])
	source.addEventListener(topic, event => { if (event.data === "first") begin(); else { got.events.push(event.data); report() } })
</script>`

// A browser whose WebSocket is closed again and again gets each message once, by the module's JavaScript client.
func TestBrowserResumesTopics(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while to start")
	}
	chromium := needTool(t, "chromium")
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		const messages = 300
		hub := topic.New(app, topic.Settings{MaxMessages: 2 * messages})
		var mu sync.Mutex
		open, opened := map[*websocket.Conn]bool{}, 0
		sockets := websocket.New(websocket.Options{
			Open: func(c *websocket.Conn) { mu.Lock(); open[c] = true; opened++; mu.Unlock() },
			Message: func(c *websocket.Conn, m websocket.Message) {
				if !hub.Handle(c, m, func(_ *websocket.Conn, name string) error {
					if name == "secret" {
						return fmt.Errorf("topic of another user")
					}
					return nil
				}) {
					_ = c.Send(m.Kind, m.Data)
				}
			},
			Close: func(c *websocket.Conn, _ websocket.End) { mu.Lock(); delete(open, c); mu.Unlock() },
		})
		begin, report := make(chan struct{}), make(chan []byte, 1)
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.HTML(topicsPage) })
		app.Get("/topics.js", func(*dunlin.Request) dunlin.Response {
			return dunlin.Bytes("text/javascript", []byte(topic.Script))
		})
		app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return sockets.Accept(r, nil) })
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("a"), hub.Topic("b")) })
		app.Post("/begin", func(*dunlin.Request) dunlin.Response { close(begin); return dunlin.NoContent() })
		app.Post("/report", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			report <- slices.Clone(body)
			return dunlin.NoContent()
		})
		browse(t, chromium, "http://"+dunlintest.Serve(t, app)+"/")
		publish := func(n int, text string) {
			if err := hub.Topic(string('a' + rune(n%2))).Publish([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		deadline := time.After(browserPatience)
		awaitTrue(t, deadline, func() bool { return hub.Stats().Subscribers == 4 })
		publish(0, "first")
		select {
		case <-begin:
		case <-deadline:
			t.Fatal("the page got no messages")
		}
		var want []string
		for i := range messages {
			publish(i, fmt.Sprint(i))
			want = append(want, fmt.Sprint(i))
			if i%60 != 30 {
				continue
			}
			mu.Lock()
			before := opened
			for c := range open {
				switch i / 60 % 3 {
				case 0: // the client honors this time, for that of its own is days
					c.Close(websocket.GoingAway, "server is shutting down: reconnect within 50 ms")
				case 1:
					c.Close(4000, "cut")
				case 2:
					c.ExpireAt(time.Now())
				}
			}
			mu.Unlock()
			publish(i, fmt.Sprint("after ", i)) // while nobody is connected, or nearly
			want = append(want, fmt.Sprint("after ", i))
			awaitTrue(t, deadline, func() bool { mu.Lock(); defer mu.Unlock(); return len(open) == 1 && opened == before+1 })
		}
		publish(messages, "last")
		want = append(want, "last")
		var got struct {
			Socket, Events, Refused, Own []string
			Resyncs, Logins              int
		}
		select {
		case body := <-report:
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
		case <-deadline:
			t.Fatal("the page has not got all messages")
		}
		if !slices.Equal(got.Socket, want) || got.Resyncs != 0 || got.Logins != 1 {
			t.Errorf("by WebSocket, with %d resyncs and %d logins: got %q", got.Resyncs, got.Logins, got.Socket)
		}
		if !slices.Equal(got.Events, want) {
			t.Errorf("by EventSource: got %q", got.Events)
		}
		if !slices.Equal(got.Refused, []string{"secret: topic of another user"}) || !slices.Equal(got.Own, []string{"hello"}) {
			t.Errorf("refused %q, own messages %q", got.Refused, got.Own)
		}
	})
}

// awaitTrue waits for a condition.
func awaitTrue(t *testing.T, deadline <-chan time.Time, f func() bool) {
	t.Helper()
	for !f() {
		select {
		case <-deadline:
			t.Fatal("it did not happen in time")
		case <-time.After(time.Millisecond):
		}
	}
}

// Clients behind a proxy that are cut at random places get each message once, over WebSockets and event streams.
func TestTopicsBehindHAProxy(t *testing.T) {
	haproxy := needTool(t, "haproxy")
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		const messages = 2000
		hub := topic.New(app, topic.Settings{MaxMessages: 2 * messages, MaxBytes: 16 << 20})
		sockets := websocket.New(websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
			hub.Handle(c, m, func(*websocket.Conn, string) error { return nil })
		}})
		app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return sockets.Accept(r, nil) })
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("a"), hub.Topic("b")) })
		addr := dunlintest.Serve(t, app)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		file, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		config := filepath.Join(t.TempDir(), "haproxy.cfg")
		text := "defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n timeout tunnel 20s\n" +
			"frontend f\n bind fd@3\n default_backend b\nbackend b\n server s " + addr + "\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, []*os.File{file}, haproxy, "-db", "-f", config)
		ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
		defer cancel()
		var started, over sync.WaitGroup
		for n := range 6 {
			started.Add(1)
			connect := func(ctx context.Context, last string) (func() (id, text string, err error), error) {
				return dialTopics(ctx, ln.Addr().String(), last)
			}
			if n%2 == 1 {
				connect = func(ctx context.Context, last string) (func() (id, text string, err error), error) {
					return readEvents(ctx, ln.Addr().String(), last)
				}
			}
			over.Go(func() { resumeTopics(ctx, t, rand.New(rand.NewPCG(uint64(n), 1)), connect, messages, started.Done) })
		}
		started.Wait()
		for i := range messages {
			if err := hub.Topic(string('a' + rune(i%2))).Publish([]byte(strconv.Itoa(i))); err != nil {
				t.Error(err)
			}
		}
		over.Wait()
	})
}

// resumeTopics receives messages, which are numbers in order, over connections that it cuts at random. A message without text is
// an ID to begin with.
func resumeTopics(ctx context.Context, t *testing.T, random *rand.Rand, connect func(context.Context, string) (func() (string, string, error), error), messages int, started func()) {
	last := ""
	for next := 0; next < messages; {
		connection, cut := context.WithCancel(ctx)
		receive, err := connect(connection, last)
		for left := random.IntN(400); err == nil && left > 0 && next < messages; left-- {
			var id, text string
			if id, text, err = receive(); err != nil {
				break
			}
			if last == "" {
				started()
			}
			last = id
			switch text {
			case "":
			case strconv.Itoa(next):
				next++
			default:
				t.Errorf("got %q, want message %d", text, next)
				next = messages
			}
		}
		cut()
		if err != nil {
			t.Error(err)
			if last == "" {
				started()
			}
			return
		}
	}
}

// dialTopics subscribes to the topics a and b over a WebSocket.
func dialTopics(ctx context.Context, addr, last string) (func() (id, text string, err error), error) {
	c, _, err := coder.Dial(ctx, "ws://"+addr+"/socket", nil)
	if err != nil {
		return nil, err
	}
	if last == "" {
		last = "-"
	}
	err = c.Write(ctx, coder.MessageText, []byte("!subscribe "+last+" a b"))
	return func() (id, text string, err error) {
		_, b, err := c.Read(ctx)
		head, text, _ := strings.Cut(strings.TrimPrefix(string(b), "!at "), "\n")
		id, _, _ = strings.Cut(head, " ")
		return id, text, err
	}, err
}

// readEvents opens the event stream of the topics.
func readEvents(ctx context.Context, addr, last string) (func() (id, text string, err error), error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/events?last="+last, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the stream was answered %s", resp.Status)
	}
	r := bufio.NewReader(resp.Body)
	return func() (id, text string, err error) {
		for {
			line, err := r.ReadString('\n')
			switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
			case err != nil:
				return "", "", err
			case name == "id":
				id = value
			case name == "data":
				text = value
			case line == "\n" && id != "":
				return id, text, nil
			}
		}
	}, nil
}
