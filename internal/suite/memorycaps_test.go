package suite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// startCapped serves bodies and large responses. There is enough memory for all of them.
func startCapped(t *testing.T, config dunlin.Config) (app *dunlin.App, addr string, logs *LogBuffer) {
	t.Helper()
	addr, logs = Start(t, config, func(a *dunlin.App) {
		app = a
		a.Post("/length", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body)))
		})
		a.Get("/large", func(*dunlin.Request) dunlin.Response {
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), slowAnswer))
		})
	})
	return app, addr, logs
}

// readWhole reads an answer.
func readWhole(t *testing.T, conn net.Conn) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, Body(t, resp)
}

func TestMaxMemoryPerConnection(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr, _ := startCapped(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxMemoryPerConnection: 256 << 10}})
		body := strings.Repeat("x", 200<<10)
		conn := Dial(t, addr)
		Send(t, conn, Request("POST /length", "", body))
		if status, text := readWhole(t, conn); status != 200 || text != fmt.Sprint(len(body)) {
			t.Errorf("a body within the bound: got %d %s", status, text)
		}
		conn = Dial(t, addr)
		Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body))
		if status, text := readWhole(t, conn); status != 200 || text != fmt.Sprint(len(body)) {
			t.Errorf("a chunked body within the bound: got %d %s", status, text)
		}
		conn = Dial(t, addr)
		Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 300<<10))
		if status, text := readWhole(t, conn); status != 413 || !strings.Contains(text, "larger than the 262144 bytes that one client may have held") {
			t.Errorf("a body beyond it: got %d %s", status, text)
		}
		conn = Dial(t, addr)
		Send(t, conn, "POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		go func() { _, _ = fmt.Fprintf(conn, "%x\r\n%s", 300<<10, strings.Repeat("x", 300<<10)) }() // the body is refused while it is sent
		if status, _ := readWhole(t, conn); status != 413 {
			t.Errorf("a chunked body beyond it: got %d", status)
		}
		conn = Dial(t, addr)
		Send(t, conn, Request("GET /large"))
		if status, text := readWhole(t, conn); status != 200 || len(text) != slowAnswer {
			t.Errorf("a large answer: got %d, %d bytes", status, len(text))
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// The largest holder of an address is evicted for others of that address. Other addresses are not affected.
func TestMaxMemoryPerAddress(t *testing.T) {
	const size = 700 << 10
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr, logs := startCapped(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxMemoryPerAddress: 1 << 20}})
		body := strings.Repeat("x", size)
		half := func(from string) net.Conn {
			conn := dialFrom(t, from, addr)
			Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, body[:size-1]))
			return conn
		}
		first := half("127.0.0.1")
		Soon(t, "the first body is held", func() bool { return app.Stats().Memory.HeldFor["body"] >= size })
		other := half("127.0.0.2")
		Soon(t, "so is that of another address", func() bool { return app.Stats().Memory.HeldFor["body"] >= 2*size })

		second := dialFrom(t, "127.0.0.1", addr)
		Send(t, second, Request("POST /length", "", body))
		if status, text := readWhole(t, second); status != 200 || text != fmt.Sprint(size) {
			t.Errorf("the second of the address: got %d %s", status, text)
		}
		if status, text := readWhole(t, first); status != 503 || !strings.Contains(text, "the address of the client is at its memory limit") {
			t.Errorf("the first: got %d %s", status, text)
		}
		Send(t, other, "x")
		if status, text := readWhole(t, other); status != 200 || text != fmt.Sprint(size) {
			t.Errorf("the other address: got %d %s", status, text)
		}
		conn := dialFrom(t, "127.0.0.1", addr)
		Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 2<<20))
		if status, text := readWhole(t, conn); status != 413 || !strings.Contains(text, "1048576 bytes") {
			t.Errorf("more than an address may hold: %d %s", status, text)
		}
		if s := app.Stats(); s.Shed["memory-cap"] != 1 || s.Shed["largest-holder"]+s.Shed["no-memory"] != 0 {
			t.Errorf("counted: got %v", s.Shed)
		}
		if text := logs.String(); strings.Contains(text, "ERROR") {
			t.Errorf("logged as a failure of the service:\n%s", text)
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// A trusted proxy forwards many clients. The memory of all of them is not bounded like that of one client.
func TestMaxMemoryPerAddressBehindAProxy(t *testing.T) {
	const size = 700 << 10
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", h2), func(t *testing.T) {
			app, addr, _ := startCapped(t, dunlin.Config{
				Engine: dunlin.EngineAuto, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{MaxMemoryPerAddress: 1 << 20}, Proxy: dunlin.ProxyConfig{Trusted: []string{"127.0.0.0/8"}},
			})
			client := &http.Transport{Protocols: new(http.Protocols)}
			client.Protocols.SetHTTP1(!h2)
			client.Protocols.SetUnencryptedHTTP2(h2)
			defer client.CloseIdleConnections()
			var bodies []*io.PipeWriter
			answers := make(chan string, 2)
			for i := range 2 {
				r, w := io.Pipe()
				req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/length", r)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = size
				req.Header.Set("X-Forwarded-For", fmt.Sprint("10.0.0.", i))
				go func() {
					resp, err := client.RoundTrip(req)
					if err != nil {
						answers <- err.Error()
						return
					}
					defer resp.Body.Close()
					text, _ := io.ReadAll(resp.Body)
					answers <- fmt.Sprint(resp.StatusCode, " ", string(text))
				}()
				if _, err := w.Write(make([]byte, size-1)); err != nil {
					t.Fatal(err)
				}
				bodies = append(bodies, w)
				Soon(t, "the body is held", func() bool { return app.Stats().Memory.HeldFor["body"] >= int64(i+1)*size })
			}
			for _, w := range bodies {
				_, _ = w.Write([]byte("x"))
				_ = w.Close()
			}
			for range 2 {
				if got := <-answers; got != fmt.Sprint("200 ", size) {
					t.Error(got)
				}
			}
		})
	}
}

// Unread responses of one address stay within the bound. Those of other addresses are sent.
func TestMaxMemoryPerAddressOfResponses(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		if engine == dunlin.EngineStd {
			t.Skip("net/http's answers are its goroutines': none are charged")
		}
		const most = 4 << 20
		app, addr, _ := startCapped(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxMemoryPerAddress: most}})
		for n := range 12 {
			conn := dialFrom(t, "127.0.0.2", addr)
			if err := TCP(conn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			_, err := io.WriteString(conn, Request("GET /large"))
			if full := n >= most/slowAnswer; err != nil && !(full && secured(t)) { // its handshake may be refused
				t.Fatal(err)
			}
		}
		conn := dialFrom(t, "127.0.0.1", addr)
		Send(t, conn, Request("GET /large"))
		if status, text := readWhole(t, conn); status != 200 || len(text) != slowAnswer {
			t.Errorf("another address: got %d, %d bytes", status, len(text))
		}
		Soon(t, "it keeps to the bound", func() bool {
			s := app.Stats()
			return s.Shed["memory-cap"] > 0 && s.Memory.Held-s.Memory.Ending <= most+most/8
		})
	})
}
