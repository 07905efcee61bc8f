package suite

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// startProbe serves GET /probe and returns the app.
func startProbe(t *testing.T, config dunlin.Config) (app *dunlin.App, addr string) {
	t.Helper()
	addr, _ = Start(t, config, func(a *dunlin.App) {
		app = a
		a.Get("/probe", Text("probe"))
	})
	return app, addr
}

// dialFrom is dial from a given local address.
func dialFrom(t *testing.T, ip, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	return overTLS(conn, addr)
}

// probe requests /probe on a connection.
func probe(t *testing.T, conn net.Conn) {
	t.Helper()
	Send(t, conn, Request("GET /probe"))
	got, err := ReadAnswer(bufio.NewReader(conn), "GET")
	if err != nil || !strings.HasSuffix(got, "\n\nprobe") {
		t.Fatalf("got %q, %v", got, err)
	}
}

// wantRefused reads the response on a connection beyond the limit.
func wantRefused(t *testing.T, conn net.Conn, why string) {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503 ") {
		t.Fatalf("got %q, %v; want a 503 and the end", got, err)
	}
	head, body, _ := strings.Cut(string(got), "\r\n\r\n")
	WantContains(t, "the refusal", head+"\r\n", "Retry-After: 1\r\n", "Connection: close\r\n",
		"Content-Type: application/problem+json\r\n", fmt.Sprintf("Content-Length: %d\r\n", len(body)))
	WantContains(t, "the problem", body, why)
}

func TestMaxConnectionsPerAddress(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConnectionsPerAddress: 2}})
		var first net.Conn
		for i := range 2 {
			conn := dialFrom(t, "127.0.0.1", addr)
			probe(t, conn)
			if i == 0 {
				first = conn
			}
		}
		wantRefused(t, dialFrom(t, "127.0.0.1", addr), "the server has as many connections from this address as it takes")
		probe(t, dialFrom(t, "127.0.0.2", addr))
		if n := app.Stats().Shed["address-limit"]; n != 1 {
			t.Errorf("%d refused by the count, want 1", n)
		}
		_ = first.Close()
		until := time.Now().Add(Patience)
		for {
			conn := dialFrom(t, "127.0.0.1", addr)
			if strings.HasPrefix(askOnce(conn), "HTTP/1.1 200 ") {
				return
			}
			if time.Now().After(until) {
				t.Fatal("a connection that closed is counted for ever")
			}
		}
	})
}

// askOnce sends as much of a request for /probe as possible, and returns the response.
func askOnce(conn net.Conn) string {
	_, _ = io.WriteString(conn, Request("GET /probe", "Connection: close"))
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func TestMaxConnections(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		_, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConnections: 2}})
		open := []net.Conn{Dial(t, addr), Dial(t, addr)}
		for _, conn := range open {
			probe(t, conn)
		}
		for range 5 {
			waiting := Dial(t, addr) // in the accept queue
			_ = open[0].Close()
			probe(t, waiting)
			open = append(open[1:], waiting)
		}
	})
}

func TestMaxRequestsPerConnection(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		_, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxRequestsPerConnection: 3}})
		for _, together := range []bool{true, false} {
			conn := Dial(t, addr)
			br := bufio.NewReader(conn)
			if together {
				Send(t, conn, strings.Repeat(Request("GET /probe"), 5))
			}
			for i := range 3 {
				if !together {
					Send(t, conn, Request("GET /probe"))
				}
				got, err := ReadAnswer(br, "GET")
				if err != nil || !strings.HasSuffix(got, "\n\nprobe") {
					t.Fatalf("request %d: got %q, %v", i+1, got, err)
				}
				if closes := strings.Contains(got, "\nConnection: close\n"); closes != (i == 2) {
					t.Errorf("request %d says that the connection closes: got %v", i+1, closes)
				}
			}
			if rest, err := io.ReadAll(br); len(rest) > 0 || !together && err != nil {
				t.Errorf("after the last answer came %q, %v", rest, err)
			}
		}
	})
}

// A client of HTTP/2 learns how many concurrent streams it may have.
func TestMaxStreamsPerConnection(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for most, want := range map[int]uint32{0: 128, 3: 3, 1000: 1000} {
			addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{MaxStreamsPerConnection: most}}, func(*dunlin.App) {})
			conn := Dial(t, addr)
			Send(t, conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			var head [9]byte
			if _, err := io.ReadFull(conn, head[:]); err != nil || head[3] != 4 {
				t.Fatalf("frame %x, %v, want SETTINGS", head, err)
			}
			settings := make([]byte, int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(conn, settings); err != nil {
				t.Fatal(err)
			}
			got := uint32(0)
			for ; len(settings) >= 6; settings = settings[6:] {
				if binary.BigEndian.Uint16(settings) == 3 { // SETTINGS_MAX_CONCURRENT_STREAMS
					got = binary.BigEndian.Uint32(settings[2:])
				}
			}
			if got != want {
				t.Errorf("MaxStreamsPerConnection %d: SETTINGS say %d, want %d", most, got, want)
			}
		}
	})
}

// The last response is complete although the client has sent more data that is not read: the event loops wait for the client
// to close before they do (RFC 9112, section 9.6). The net/http engine closes at once, as net/http does.
func TestLastResponseBeforeCloseIsComplete(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		if engine == dunlin.EngineStd {
			return
		}
		leave, entered := make(chan struct{}), make(chan struct{})
		large := strings.Repeat("x", 400<<10)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxRequestsPerConnection: 1}}, func(a *dunlin.App) {
			a.Get("/large", func(*dunlin.Request) dunlin.Response {
				close(entered)
				<-leave
				return dunlin.Text(large)
			})
		})
		conn := Dial(t, addr)
		Send(t, conn, Request("GET /large"))
		<-entered
		Send(t, conn, Request("GET /large"))
		close(leave)
		br := bufio.NewReader(conn)
		Answered(t, br, 200, large)
		if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
			t.Errorf("after the last answer came %q, %v", rest, err)
		}
	})
}

func TestMaxHeaders(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		_, addr := startProbe(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxHeaders: 20}})
		for _, c := range []struct{ lines, status int }{{19, 200}, {22, 431}} {
			conn := Dial(t, addr)
			var lines []string
			for i := range c.lines {
				lines = append(lines, fmt.Sprintf("X-%d: v", i))
			}
			Send(t, conn, Request("GET /probe", lines...))
			br := bufio.NewReader(conn)
			got, err := ReadAnswer(br, "GET")
			if err != nil || got[9:12] != fmt.Sprint(c.status) {
				t.Fatalf("%d lines: got %q, %v; want %d", c.lines, got, err, c.status)
			}
			if c.status == 431 {
				WantContains(t, "the refusal", got, "too many fields (the limit is 20)", "Connection: close\n", "application/problem+json")
				if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
					t.Errorf("after the refusal: got %q, %v", rest, err)
				}
			}
		}
	})
}
