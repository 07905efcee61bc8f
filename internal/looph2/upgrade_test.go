package looph2_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// startUpgrades serves an app that supports HTTP/2 by Upgrade; its action /blocks waits for blocked.
func startUpgrades(t *testing.T, config dunlin.Config, blocked <-chan struct{}) *h2Server {
	config.Engine = dunlin.EngineLoop
	said := func(r *dunlin.Request) dunlin.Response {
		std := r.Std()
		return dunlin.Text(fmt.Sprintf("%s %s %s %s Cookie=%q Secret=%q Upgrade=%q Connection=%q HTTP2-Settings=%q TE=%q", std.Proto,
			std.Method, std.Host, std.RequestURI, r.Header("Cookie"), r.Header("Secret"), r.Header("Upgrade"),
			r.Header("Connection"), r.Header("HTTP2-Settings"), r.Header("TE")))
	}
	return startH2(t, config, func(app *dunlin.App) {
		app.Get("/said", said)
		app.Post("/said", said)
		app.Handle("*", "/connect", said)
		app.Get("/long", func(*dunlin.Request) dunlin.Response { return dunlin.Text(strings.Repeat("long ", 20_000)) })
		app.Get("/blocks", func(r *dunlin.Request) dunlin.Response {
			select {
			case <-blocked:
			case <-time.After(patience):
			}
			return said(r)
		})
		app.Get("/stream", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("", func(w io.Writer) error {
				for range 100 {
					if _, err := io.WriteString(w, strings.Repeat("piece ", 200)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

const asksForH2C = "Host: h.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"

// preface is the beginning of a client's HTTP/2 connection, with a window large enough for every answer here.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x0f\xff\xff" +
	"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x0f\xff\xff"

// upgradedConn sends a head and the bytes of then at once, and reads 101.
func upgradedConn(t *testing.T, addr, head, then string) *h2Conn {
	t.Helper()
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, head+"\r\n"+then); err != nil {
		t.Fatal(err)
	}
	const want = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); string(got) != want {
		t.Fatalf("got %q, %v", got[:n], err)
	}
	return &h2Conn{conn, t}
}

// answer returns the body of the answer on a stream.
func (c *h2Conn) answer(stream uint32) string {
	c.t.Helper()
	u := &tunnel{h2Conn: c, stream: stream, settings: make(map[uint16]uint32)}
	for !u.ended && !u.reset {
		u.step()
	}
	if u.reset {
		return "reset"
	}
	return string(u.data)
}

// A request of HTTP/1.1 that requests HTTP/2 is answered on stream 1, and the connection continues with HTTP/2 (RFC 7540
// §3.2).
func TestUpgrade(t *testing.T) {
	blocked := make(chan struct{})
	s := startUpgrades(t, dunlin.Config{H2C: dunlin.H2CUpgrade}, blocked)
	long, pieces := strings.Repeat("long ", 20_000), strings.Repeat("piece ", 20_000)
	for _, c := range []struct{ name, head, want string }{
		{"target and fields", "GET /said?a=%20b HTTP/1.1\r\nCookie: a=1\r\n" + asksForH2C,
			`HTTP/2.0 GET h.example /said?a=%20b Cookie="a=1" Secret="" Upgrade="" Connection="" HTTP2-Settings="" TE=""`},
		{"what concerns the connection ends here", "GET /said HTTP/1.1\r\nKeep-Alive: x\r\nConnection: keep-alive\r\nTE: gzip\r\n" + asksForH2C,
			`HTTP/2.0 GET h.example /said Cookie="" Secret="" Upgrade="" Connection="" HTTP2-Settings="" TE=""`},
		{"absolute form", "GET http://other.example/said?x HTTP/1.1\r\n" + asksForH2C,
			`HTTP/2.0 GET other.example /said?x Cookie="" Secret="" Upgrade="" Connection="" HTTP2-Settings="" TE=""`},
		{"an empty body", "POST /said HTTP/1.1\r\nContent-Length: 0\r\n" + asksForH2C,
			`HTTP/2.0 POST h.example /said Cookie="" Secret="" Upgrade="" Connection="" HTTP2-Settings="" TE=""`},
		{"HEAD", "HEAD /said HTTP/1.1\r\n" + asksForH2C, ""},
		{"a long answer", "GET /long HTTP/1.1\r\n" + asksForH2C, long},
		{"a stream", "GET /stream HTTP/1.1\r\n" + asksForH2C, pieces},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, ", preface together ", together), func(t *testing.T) {
				then := ""
				if together {
					then = preface
				}
				conn := upgradedConn(t, s.addr, c.head, then)
				if !together {
					_, _ = io.WriteString(conn, preface)
				}
				if got := conn.answer(1); got != c.want {
					t.Errorf("%d bytes: got %.200q, want %d: %.200q", len(got), got, len(c.want), c.want)
				}
				conn.fields(3, true, ":method", "GET", ":scheme", "http", ":path", "/said", ":authority", "again.example")
				if got := conn.answer(3); !strings.HasPrefix(got, "HTTP/2.0 GET again.example /said ") {
					t.Errorf("the next one: got %q", got)
				}
			})
		}
	}
	t.Run("an action that blocks", func(t *testing.T) {
		conn := upgradedConn(t, s.addr, "GET /blocks HTTP/1.1\r\n"+asksForH2C, preface)
		conn.fields(3, true, ":method", "GET", ":scheme", "http", ":path", "/said", ":authority", "again.example")
		if got := conn.answer(3); !strings.HasPrefix(got, "HTTP/2.0 GET again.example /said ") { // beside it
			t.Errorf("the next one: got %q", got)
		}
		close(blocked)
		if got := conn.answer(1); !strings.HasPrefix(got, "HTTP/2.0 GET h.example /blocks ") {
			t.Errorf("the one that blocks: got %q", got)
		}
	})
	t.Run("behind others", func(t *testing.T) {
		conn := dial(t, s.addr)
		_, _ = io.WriteString(conn, "GET /said HTTP/1.1\r\nHost: first.example\r\n\r\nGET /said HTTP/1.1\r\n"+asksForH2C+"\r\n"+preface)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(body), "HTTP/1.1 GET first.example") {
			t.Fatalf("got %q, %v", body, err)
		}
		if resp, err = http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		c := &h2Conn{readsFrom{conn, in}, t}
		if got := c.answer(1); !strings.HasPrefix(got, "HTTP/2.0 GET h.example") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("behind long ones", func(t *testing.T) {
		conn := dial(t, s.addr)
		longer := "GET /long HTTP/1.1\r\nHost: first.example\r\n\r\n"
		_, _ = io.WriteString(conn, longer+longer+"GET /long HTTP/1.1\r\n"+asksForH2C+"\r\n"+preface)
		in := bufio.NewReader(conn)
		for range 2 {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != long {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
		}
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		c := &h2Conn{readsFrom{conn, in}, t}
		if got := c.answer(1); got != long {
			t.Errorf("%d bytes", len(got))
		}
	})
	t.Run("until the client speaks HTTP/2 little is sent", func(t *testing.T) {
		conn := upgradedConn(t, s.addr, "GET /long HTTP/1.1\r\n"+asksForH2C, "")
		u := &tunnel{h2Conn: conn, settings: make(map[uint16]uint32)}
		for len(u.data) < 8<<10 {
			u.step()
		}
		_, _ = io.WriteString(conn, preface)
		for !u.ended {
			u.step()
		}
		if string(u.data) != long {
			t.Errorf("%d bytes", len(u.data))
		}
	})
}

// Earlier requests of a connection over HTTP/1.1 count towards its maximum number of requests.
func TestUpgradeCounts(t *testing.T) {
	s := startUpgrades(t, dunlin.Config{H2C: dunlin.H2CUpgrade, Limits: dunlin.Limits{MaxRequestsPerConnection: 3}}, nil)
	conn := dial(t, s.addr)
	first := "GET /said HTTP/1.1\r\nHost: first.example\r\n\r\n"
	_, _ = io.WriteString(conn, first+first+"GET /said HTTP/1.1\r\n"+asksForH2C+"\r\n"+preface)
	in := bufio.NewReader(conn)
	for _, want := range []int{200, 200, 101} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatal(resp, err)
		}
		if want != 101 {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	}
	u, told := &tunnel{h2Conn: &h2Conn{readsFrom{conn, in}, t}, settings: make(map[uint16]uint32)}, false
	for !u.ended {
		told = u.step() == frameGoAway || told
	}
	if !told {
		t.Error("a client is not told that its third request is the last")
	}
}

// A readsFrom is a connection some of whose bytes have been read already.
type readsFrom struct {
	net.Conn
	in io.Reader
}

func (c readsFrom) Read(b []byte) (int, error) { return c.in.Read(b) }

// An Upgrade that cannot be accepted is answered over HTTP/1.1.
func TestRejectedUpgrade(t *testing.T) {
	upgrades := startUpgrades(t, dunlin.Config{H2C: dunlin.H2CUpgrade}, nil)
	onlyKnown := startUpgrades(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge}, nil)
	tight := startUpgrades(t, dunlin.Config{H2C: dunlin.H2CUpgrade, Limits: dunlin.Limits{MaxHead: 1 << 10}}, nil)
	settings := func(s string) string { return strings.Replace(asksForH2C, "AAMAAABkAAQAAP__", s, 1) }
	for _, c := range []struct {
		name string
		s    *h2Server
		head string
	}{
		{"not asked of the app", onlyKnown, "GET /said HTTP/1.1\r\n" + asksForH2C},
		{"with a body", upgrades, "POST /said HTTP/1.1\r\nContent-Length: 2\r\n" + asksForH2C + "\r\nab"},
		{"with a body in chunks", upgrades, "POST /said HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + asksForH2C + "\r\n2\r\nab\r\n0\r\n"},
		{"without settings", upgrades, "GET /said HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"},
		{"with two", upgrades, "GET /said HTTP/1.1\r\nHTTP2-Settings: AAMAAABk\r\n" + asksForH2C},
		{"which Connection does not name", upgrades, "GET /said HTTP/1.1\r\n" + strings.Replace(asksForH2C, ", HTTP2-Settings", "", 1)},
		{"no base64", upgrades, "GET /said HTTP/1.1\r\n" + settings("AAM*")},
		{"no whole settings", upgrades, "GET /said HTTP/1.1\r\n" + settings("AAMAAAA")},
		{"a window that is too large", upgrades, "GET /said HTTP/1.1\r\n" + settings("AAT_____")},
		{"another protocol", upgrades, "GET /said HTTP/1.1\r\n" + strings.Replace(asksForH2C, "h2c", "websocket", 1)},
		{"h2, which is for TLS", upgrades, "GET /said HTTP/1.1\r\n" + strings.Replace(asksForH2C, "h2c", "h2", 1)},
		{"HTTP/1.0", upgrades, "GET /said HTTP/1.0\r\n" + asksForH2C},
		{"the last request", upgrades, "GET /said HTTP/1.1\r\nConnection: close\r\n" + asksForH2C},
		{"Connection names another field", upgrades, "GET /said HTTP/1.1\r\nSecret: x\r\nConnection: Secret\r\n" + asksForH2C},
		{"a method that HTTP/2 has for something else", upgrades, "CONNECT /connect HTTP/1.1\r\n" + asksForH2C},
		{"a head that HTTP/2 reckons to be too large", tight, "GET /said HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 40) + asksForH2C},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, c.s.addr)
			_, _ = io.WriteString(conn, c.head+"\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(string(body), "HTTP/1.") {
				t.Errorf("got %s, %q, %v", resp.Status, body, err)
			}
		})
	}
}
