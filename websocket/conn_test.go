package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/websocket"
)

func contextWithin(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// echo sends a message back. It waits while the client's socket is being written to: what the client has read may still count
// as pending.
func echo(c *websocket.Conn, m websocket.Message) {
	if err := c.Write(context.Background(), m.Kind, m.Data); err != nil && !errors.Is(err, websocket.ErrClosed) {
		panic(err)
	}
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("nothing has happened")
	}
	return v
}

func TestHandshakes(t *testing.T) {
	handler := websocket.New(websocket.Options{Message: echo, Subprotocols: []string{"chat.v2", "chat.v1"}, Origins: []string{"https://app.example"}})
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		app.Handle("GET,POST", "/", func(r *dunlin.Request) dunlin.Response {
			return handler.Accept(r, nil).Header("X-Own", "kept")
		})
		dial := server(t, app, false)
		for name, v := range map[string]struct {
			header []string
			status int
			want   map[string]string
		}{
			"plain":               {nil, 101, map[string]string{"Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Connection": "Upgrade", "Upgrade": "websocket", "X-Own": "kept", "Sec-WebSocket-Protocol": "", "Content-Length": ""}},
			"tokens in any case":  {[]string{"Connection", "keep-alive, upgrade", "Upgrade", "WebSocket"}, 101, nil},
			"not an upgrade":      {[]string{"Upgrade", "", "Connection", ""}, 426, map[string]string{"Sec-WebSocket-Version": "13"}},
			"old version":         {[]string{"Sec-WebSocket-Version", "8"}, 426, map[string]string{"Sec-WebSocket-Version": "13"}},
			"short key":           {[]string{"Sec-WebSocket-Key", "abc"}, 400, nil},
			"no key":              {[]string{"Sec-WebSocket-Key", ""}, 400, nil},
			"body":                {[]string{"Content-Length", "2"}, 400, nil},
			"same origin":         {[]string{"Origin", "http://TEST.example"}, 101, nil},
			"other origin":        {[]string{"Origin", "http://evil.example"}, 403, nil},
			"opaque origin":       {[]string{"Origin", "null"}, 403, nil},
			"listed origin":       {[]string{"Origin", "https://app.example"}, 101, nil},
			"prefix of origin":    {[]string{"Origin", "https://app.example.evil.example"}, 403, nil},
			"subprotocol":         {[]string{"Sec-WebSocket-Protocol", "other, chat.v1, chat.v2"}, 101, map[string]string{"Sec-WebSocket-Protocol": "chat.v1"}},
			"unknown subprotocol": {[]string{"Sec-WebSocket-Protocol", "other"}, 101, map[string]string{"Sec-WebSocket-Protocol": ""}},
			"no compression":      {[]string{"Sec-WebSocket-Extensions", deflate}, 101, map[string]string{"Sec-WebSocket-Extensions": ""}},
		} {
			t.Run(name, func(t *testing.T) {
				c, resp := handshake(t, dial(), v.header...)
				if resp.StatusCode != v.status {
					t.Errorf("status %d, want %d", resp.StatusCode, v.status)
				}
				for name, want := range v.want {
					if got := resp.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if v.status == 101 {
					c.send(frame(text, "hello"))
					c.expect(text1("hello"))
				}
			})
		}
	})
}

// A connection in memory or over HTTP/2 cannot be switched to WebSocket.
func TestNoConnectionToSwitch(t *testing.T) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		return websocket.Accept(r, websocket.Options{Message: echo})
	})
	req, err := http.NewRequest("GET", "http://test.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := dunlintest.NewClient(app).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a plain request was answered %s", resp.Status)
	}
}

func TestEventsInOrder(t *testing.T) {
	var mu sync.Mutex
	var events []string
	note := func(c *websocket.Conn, what string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprint(c.Value(), " ", what))
	}
	over := make(chan struct{}, 1)
	handler := websocket.New(websocket.Options{
		Open:    func(c *websocket.Conn) { note(c, "open"); _ = c.Send(websocket.Text, []byte("welcome")) },
		Message: func(c *websocket.Conn, m websocket.Message) { note(c, string(m.Data)); echo(c, m) },
		Close:   func(c *websocket.Conn, end websocket.End) { note(c, end.Error()); over <- struct{}{} },
	})
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		events = nil
		app.Get("/", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, "v") })
		c, _ := handshake(t, server(t, app, false)())
		c.expect(text1("welcome"))
		c.send(frame(text, "1") + frame(text, "2") + frame(closes, closing(3000, "done")))
		c.expect(text1("1"))
		c.expect(text1("2"))
		c.expect(closed(3000, ""))
		receive(t, over)
		mu.Lock()
		defer mu.Unlock()
		if got, want := strings.Join(events, ","), "v open,v 1,v 2,v websocket: connection is closed: 3000 done"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestLostClient(t *testing.T) {
	ends := make(chan websocket.End, 10)
	o := &websocket.Options{Message: echo, Close: func(_ *websocket.Conn, end websocket.End) { ends <- end }}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		c.send(frame(1, "the beginning of a message"))
		_ = c.Close()
		if end := receive(t, ends); end.Code != websocket.Abnormal || !end.Client {
			t.Errorf("%+v", end)
		}
	})
}

func TestServerCloses(t *testing.T) {
	ends := make(chan websocket.End, 10)
	o := &websocket.Options{
		Message: func(c *websocket.Conn, m websocket.Message) {
			echo(c, m)
			c.Close(4000, "as you wish")
			c.Close(4001, "too late")
			if err := c.Send(websocket.Text, nil); err != websocket.ErrClosed {
				t.Errorf("Send after Close: %v", err)
			}
		},
		Close: func(_ *websocket.Conn, end websocket.End) { ends <- end },
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		c.send(frame(text, "a") + frame(text, "dropped") + frame(1, "dropped, too"))
		c.expect(text1("a"))
		c.expect(closed(4000, "as you wish"))
		c.send(frame(cont, "…") + frame(ping, "not answered") + frame(closes, closing(4000, "")))
		if rest := c.rest(); len(rest) > 0 {
			t.Errorf("more frames: %q", rest)
		}
		if end := receive(t, ends); end != (websocket.End{Code: 4000, Reason: "as you wish"}) {
			t.Errorf("%+v", end)
		}
	})
}

func TestHalfOpenClient(t *testing.T) {
	ends := make(chan websocket.End, 10)
	o := &websocket.Options{
		Message: echo, PingInterval: 20 * time.Millisecond,
		Close: func(_ *websocket.Conn, end websocket.End) { ends <- end },
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		c.expect(f1(ping, "")) // and then sends nothing
		if rest := c.rest(); len(rest) > 0 {
			t.Errorf("more frames: %q", rest)
		}
		if end := receive(t, ends); end.Code != websocket.Abnormal || !end.Client {
			t.Errorf("%+v", end)
		}
		alive := open()
		for range 2 {
			alive.expect(f1(ping, ""))
			alive.send(frame(pong, ""))
		}
		alive.send(bye)
		alive.expect(ok)
		receive(t, ends)
	})
}

func TestFloods(t *testing.T) {
	for name, v := range map[string]struct {
		o     *websocket.Options
		frame string
	}{
		"pings":           {&websocket.Options{Message: echo}, frame(ping, "x")},
		"pongs":           {&websocket.Options{Message: echo}, frame(pong, "")},
		"empty fragments": {&websocket.Options{Message: echo, MaxFragments: 1 << 20}, frame(1, "")},
		"messages":        {&websocket.Options{Message: echo, MaxRate: 10}, frame(text, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, dunlin.Config{}, v.o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
				c := open()
				go func() {
					next := v.frame
					for {
						if _, err := io.WriteString(c.Conn, next); err != nil {
							return
						}
						if next[0] == 1 {
							next = frame(0, "")
						}
					}
				}()
				for {
					switch f := c.frame(); {
					case f == closed(websocket.PolicyViolation, "too many frames"):
						return
					case f == "" || f[0] == closes:
						t.Fatalf("the flood was answered %q", f)
					}
				}
			})
		})
	}
}

// A client that does not read uses up to MaxPending, and gets no further messages until it reads.
func TestClientThatDoesNotRead(t *testing.T) {
	const size = 64 << 10
	full, drained, start := make(chan int, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	o := &websocket.Options{
		MaxPending: 128 << 10,
		Message: func(c *websocket.Conn, _ websocket.Message) {
			go func() {
				message := make([]byte, size)
				for n := 0; ; n++ {
					err := c.Send(websocket.Binary, message)
					if err == websocket.ErrFull {
						if pending := c.Pending(); pending < 64<<10 {
							t.Errorf("refused with %d bytes pending", pending)
						}
						full <- n
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if n%8 == 7 {
						runtime.Gosched() // wait until the output is sent
					}
				}
			}()
			start <- struct{}{}
		},
		Drain: func(c *websocket.Conn) {
			if err := c.Send(websocket.Text, []byte("drained")); err != nil {
				t.Error(err)
			}
			drained <- struct{}{}
		},
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		c.send(frame(text, "begin"))
		receive(t, start)
		n := receive(t, full)
		for range n {
			if f := c.frame(); len(f) != 1+size {
				t.Fatalf("%q", short(f))
			}
		}
		c.expect(text1("drained"))
		receive(t, drained)
	})
}

// Write waits for the client, also in an event function. The loop meanwhile serves other connections.
func TestWriteWaits(t *testing.T) {
	const size, count = 256 << 10, 64
	wrote := make(chan error, 1)
	o := &websocket.Options{
		MaxPending: 1 << 10,
		Message: func(c *websocket.Conn, m websocket.Message) {
			if string(m.Data) == "echo" {
				echo(c, m)
				return
			}
			ctx, cancel := contextWithin(patience)
			defer cancel()
			message := make([]byte, size)
			for range count {
				if err := c.Write(ctx, websocket.Binary, message); err != nil {
					wrote <- err
					return
				}
			}
			wrote <- nil
		},
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		var slow []*client
		for range 2 {
			c := open()
			c.send(frame(text, "much"))
			slow = append(slow, c)
		}
		quick := open()
		for range 10 {
			quick.send(frame(text, "echo"))
			quick.expect(text1("echo"))
		}
		for _, c := range slow {
			for range count {
				if f := c.frame(); len(f) != 1+size {
					t.Fatalf("%q", short(f))
				}
			}
			if err := receive(t, wrote); err != nil {
				t.Error(err)
			}
			c.send(frame(text, "echo"))
			c.expect(text1("echo"))
		}
	})
}

func TestWriteEnds(t *testing.T) {
	errs := make(chan error, 2)
	o := &websocket.Options{
		MaxPending: 1,
		Message: func(c *websocket.Conn, m websocket.Message) {
			ctx, cancel := context.WithCancel(context.Background())
			if string(m.Data) == "cancel" {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			go func() {
				defer cancel()
				message := make([]byte, 1<<20)
				for {
					if err := c.Write(ctx, websocket.Binary, message); err != nil {
						errs <- err
						return
					}
				}
			}()
		},
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		lost := open()
		lost.send(frame(text, "go"))
		_ = lost.frame()
		_ = lost.Close()
		if err := receive(t, errs); !errors.Is(err, websocket.ErrClosed) {
			t.Errorf("Write to a lost client: %v", err)
		}
		slow := open()
		slow.send(frame(text, "cancel"))
		if err := receive(t, errs); !errors.Is(err, context.Canceled) {
			t.Errorf("Write with a context that ends: %v", err)
		}
	})
}

// While a function blocks, the loop serves other connections. The messages of the connection stay in order.
func TestFunctionsBlock(t *testing.T) {
	entered, proceed := make(chan struct{}, 1), make(chan struct{})
	o := &websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
		if bytes.HasPrefix(m.Data, []byte("block")) {
			entered <- struct{}{}
			<-proceed
		}
		echo(c, m)
	}}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, app *dunlin.App, open func(...string) *client) {
		blocked, other := open(), open()
		for i := range 40 { // the first calls are taken over, later ones run on workers
			long := fmt.Sprint("block ", i, strings.Repeat("-", i*100))
			blocked.send(frame(text, "before") + frame(text, long) + frame(text, "after")[:7])
			receive(t, entered)
			other.send(frame(text, "hello"))
			other.expect(text1("hello"))
			blocked.send(frame(text, "after")[7:])
			proceed <- struct{}{}
			for _, want := range []string{"before", long, "after"} {
				blocked.expect(text1(want))
			}
		}
	})
}

func TestPanicAndGoexit(t *testing.T) {
	block := make(chan struct{})
	o := &websocket.Options{Message: func(_ *websocket.Conn, m websocket.Message) {
		if m.Data[0] == 'l' {
			<-block
		}
		if strings.HasSuffix(string(m.Data), "panic") {
			panic("deliberate")
		}
		runtime.Goexit()
	}}
	config := dunlin.Config{Logger: slog.New(slog.DiscardHandler)}
	onServers(t, config, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		for _, how := range []string{"panic", "goexit", "late panic", "late goexit"} {
			c := open()
			c.send(frame(text, how) + frame(text, "next"))
			if how[0] == 'l' {
				other := open() // it gets its response after a takeover of the loop
				other.send(frame(ping, "x"))
				other.expect(f1(pong, "x"))
				block <- struct{}{}
			}
			if got := c.rest(); len(got) != 1 || got[0] != closed(websocket.InternalError, "internal error") {
				t.Errorf("%s is answered %q", how, got)
			}
		}
	})
}

func TestServe(t *testing.T) {
	results := make(chan error, 1)
	o := &websocket.Options{Serve: func(ctx context.Context, c *websocket.Conn) error {
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := c.Read(short); !errors.Is(err, context.Canceled) {
			t.Errorf("Read with a context that has ended: %v", err)
		}
		for {
			m, err := c.Read(ctx)
			switch {
			case err != nil:
				results <- err
				<-ctx.Done()
				return err
			case string(m.Data) == "return":
				return nil
			case string(m.Data) == "fail":
				return errors.New("deliberate")
			case string(m.Data) == "panic":
				panic("deliberate")
			}
			if err := c.Write(ctx, m.Kind, m.Data); err != nil {
				return err
			}
		}
	}}
	config := dunlin.Config{Logger: slog.New(slog.DiscardHandler)}
	onServers(t, config, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		var many strings.Builder
		for i := range 50 {
			many.WriteString(frame(text, fmt.Sprint(i)))
		}
		c.send(many.String())
		for i := range 50 {
			c.expect(text1(fmt.Sprint(i)))
		}
		c.send(frame(closes, closing(3001, "bye")))
		c.expect(closed(3001, ""))
		end := websocket.End{}
		if err := receive(t, results); !errors.As(err, &end) || !errors.Is(err, websocket.ErrClosed) || end.Code != 3001 || end.Reason != "bye" || !end.Client {
			t.Errorf("Read after the end: %v", err)
		}
		for message, want := range map[string]string{
			"return": closed(websocket.Normal, ""), "fail": closed(websocket.InternalError, "internal error"), "panic": closed(websocket.InternalError, "internal error"),
		} {
			c := open()
			c.send(frame(text, message))
			c.expect(want)
			c.send(bye)
			if rest := c.rest(); len(rest) > 0 {
				t.Errorf("%s: more frames %q", message, rest)
			}
		}
	})
}

// The connection reads one message ahead, and then no further input.
func TestReadAheadIsBounded(t *testing.T) {
	conns := make(chan *websocket.Conn, 1)
	o := &websocket.Options{Open: func(c *websocket.Conn) { conns <- c }}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		c := open()
		conn := receive(t, conns)
		c.send(frame(ping, "1") + frame(text, "a") + frame(ping, "2") + frame(text, "b"))
		c.expect(f1(pong, "1"))
		ctx, cancel := contextWithin(patience)
		defer cancel()
		for _, want := range []string{"a", "b"} {
			if m, err := conn.Read(ctx); err != nil || string(m.Data) != want {
				t.Fatalf("%q, %v", m.Data, err)
			}
		}
		c.expect(f1(pong, "2"))
		c.send(bye)
		c.expect(ok)
	})
}

// A connection is closed when its authorization expires. A later call of ExpireAt replaces the time.
func TestExpireAt(t *testing.T) {
	o := &websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
		c.ExpireAt(time.Now().Add(time.Hour))
		switch string(m.Data) {
		case "never":
			c.ExpireAt(time.Now().Add(time.Millisecond))
			c.ExpireAt(time.Time{})
		case "later":
			c.ExpireAt(time.Now().Add(time.Millisecond))
			c.ExpireAt(time.Now().Add(time.Hour))
		case "elsewhere":
			go c.ExpireAt(time.Now().Add(time.Millisecond))
		case "past":
			c.ExpireAt(time.Now().Add(-time.Hour))
		}
		_ = c.Send(m.Kind, m.Data)
	}}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		for _, how := range []string{"elsewhere", "past"} {
			c := open()
			for _, m := range []string{"never", "later", how} {
				c.send(frame(text, m))
				c.expect(text1(m))
			}
			c.expect(closed(websocket.Unauthorized, "authorization has expired"))
			c.send(frame(closes, closing(websocket.Unauthorized, "")))
			if rest := c.rest(); len(rest) > 0 {
				t.Errorf("more frames: %q", rest)
			}
		}
	})
}

func TestDrain(t *testing.T) {
	o := &websocket.Options{Message: echo, Reconnect: 2 * time.Second}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, app *dunlin.App, open func(...string) *client) {
		idle, busy := open(), open()
		busy.send(frame(text, "a"))
		busy.expect(text1("a"))
		down := make(chan struct{})
		go func() { shutdown(t, app); close(down) }()
		for _, c := range []*client{idle, busy} {
			c.expect(closed(websocket.GoingAway, "server is shutting down: reconnect within 2000 ms"))
			c.send(frame(closes, closing(websocket.GoingAway, "")))
			if rest := c.rest(); len(rest) > 0 {
				t.Errorf("more frames: %q", rest)
			}
			_ = c.Close()
		}
		receive(t, down)
	})
}

// If there is no memory for a message, its client gets 1013. Other connections continue.
func TestNoMemory(t *testing.T) {
	o := &websocket.Options{MaxMessage: 1 << 30, Message: echo, Compress: true}
	config := dunlin.Config{Logger: slog.New(slog.DiscardHandler)}
	config.Limits.MaxMemoryPerConnection = 1 << 20
	onServers(t, config, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		other := open()
		for name, in := range map[string]string{
			"incomplete": frame(bin, strings.Repeat("x", 4<<20)), "compressed": frame(bin|rsv1, packed(strings.Repeat("x", 8<<20))),
		} {
			c := open("Sec-WebSocket-Extensions", deflate)
			go func() { _, _ = io.WriteString(c.Conn, in) }()
			if f := c.frame(); f != closed(websocket.TryAgainLater, "no memory for the message") && f != closed(websocket.TryAgainLater, "no memory") {
				t.Errorf("%s: %q", name, short(f))
			}
			other.send(frame(text, "hello"))
			other.expect(text1("hello"))
		}
	})
}

// An action that has blocked its loop, or that has a timeout, can open a WebSocket. The client has sent its first message before
// the response.
func TestAcceptAfterBlocking(t *testing.T) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	o := websocket.Options{Message: echo}
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		action := func(r *dunlin.Request) dunlin.Response {
			entered <- struct{}{}
			<-proceed
			return websocket.Accept(r, o)
		}
		app.Get("/blocks", action)
		app.WithTimeout(time.Minute).Get("/timed", action)
		dial := server(t, app, false)
		for i := range 40 { // later calls begin on workers
			conn := dial()
			c := &client{t, conn, bufio.NewReader(conn)}
			path := []string{"/blocks", "/timed"}[i%2]
			c.send("GET " + path + " HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + "\r\n\r\n" + frame(text, "early"))
			receive(t, entered)
			if i%4 < 2 { // long enough for a takeover
				other := dial()
				_, resp := handshake(t, other, "Upgrade", "")
				if resp.StatusCode != http.StatusNotFound {
					t.Fatalf("another connection was answered %s", resp.Status)
				}
			}
			proceed <- struct{}{}
			resp, err := http.ReadResponse(c.r, nil)
			if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%v, %v", resp, err)
			}
			c.expect(text1("early"))
			c.send(frame(ping, "x") + bye)
			c.expect(f1(pong, "x"))
			c.expect(ok)
		}
	})
}
