package suite

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// Frames of HTTP/2 (RFC 9113, section 6).
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	frameGoAway   = 7
	frameWindow   = 8

	flagEnd     = 1
	flagHeaders = 4
)

// An h2Conn is an HTTP/2 client that grants windows only on request.
type h2Conn struct {
	net.Conn
	t *testing.T
}

// dialH2 connects without granting any stream a window.
func dialH2(t *testing.T, addr string) *h2Conn {
	t.Helper()
	return onH2(t, Dial(t, addr))
}

// onH2 is dialH2 on a connection.
func onH2(t *testing.T, conn net.Conn) *h2Conn {
	t.Helper()
	if over, ok := conn.(*tls.Conn); ok { // before the handshake
		config := tlstest.Client()
		config.NextProtos = []string{"h2"}
		conn = tls.Client(over.NetConn(), config)
	}
	c := &h2Conn{conn, t}
	Send(t, c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(frameSettings, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // SETTINGS_INITIAL_WINDOW_SIZE 0
	c.frame(frameSettings, flagEnd, 0, nil)                // accepts all settings of the server
	return c
}

// h2Client returns an HTTP/2 client for the servers of a test, and the scheme of its URLs.
func h2Client(t *testing.T) (c *http.Client, scheme string) {
	t.Helper()
	if !secured(t) {
		return Client(t, nil, H2C), "http://"
	}
	_, trusted := tlstest.Certificate()
	return Client(t, trusted, HTTP2), "https://"
}

func (c *h2Conn) frame(kind, flags byte, stream uint32, payload []byte) {
	c.t.Helper()
	b := []byte{0, 0, 0, kind, flags, 0, 0, 0, 0}
	b[0], b[1], b[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	binary.BigEndian.PutUint32(b[5:], stream)
	if _, err := c.Write(append(b, payload...)); err != nil {
		c.t.Fatal(err)
	}
}

// get sends a GET for a path, which must be short.
func (c *h2Conn) get(stream uint32, path string) {
	c.t.Helper()
	block := []byte{0x82, 0x86, 0x04, byte(len(path))} // GET, http, and the path as a literal (RFC 7541)
	if secured(c.t) {
		block[1] = 0x87
	}
	block = append(append(block, path...), 0x01, 1, 'a')
	c.frame(frameHeaders, flagEnd|flagHeaders, stream, block)
}

// grant lets the server send n more bytes.
func (c *h2Conn) grant(stream uint32, n int) {
	c.t.Helper()
	for _, stream := range []uint32{0, stream} {
		c.frame(frameWindow, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(n)))
	}
}

// next returns the next frame of a stream.
func (c *h2Conn) next() (kind, flags byte, stream uint32, length int) {
	c.t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			c.t.Fatalf("read a frame: %v", err)
		}
		length = int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if _, err := io.CopyN(io.Discard, c, int64(length)); err != nil {
			c.t.Fatal(err)
		}
		if head[3] == frameGoAway {
			c.t.Fatal("the server closes the connection")
		}
		if stream = binary.BigEndian.Uint32(head[5:]); stream != 0 {
			return head[3], head[4], stream, length
		}
	}
}

func registerAnswers(app *dunlin.App) {
	large := strings.Repeat("x", 1<<20)
	app.Get("/small", Text("small"))
	app.Get("/large", Text(large))
	app.HandleStd("GET", "/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, large)
	}))
	app.Get("/stream", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for range 1024 {
				if _, err := io.WriteString(w, large[:1024]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// If an HTTP/2 client does not read its responses, their streams are reset, regardless of their size and origin. The
// goroutines that write them end.
func TestUnreadStreams(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine, Timeouts: dunlin.Timeouts{Write: 50 * time.Millisecond}}, func(a *dunlin.App) { app = a; registerAnswers(a) })
		for _, path := range []string{"/small", "/large", "/std", "/stream"} {
			t.Run(path[1:], func(t *testing.T) {
				c := dialH2(t, addr)
				const streams = 50
				for i := range streams {
					c.get(uint32(2*i+1), path)
				}
				for cut := 0; cut < streams; {
					if kind, _, stream, n := c.next(); kind == frameReset {
						cut++
					} else if kind == frameData && n > 0 {
						t.Fatalf("%d bytes of stream %d, which was granted none", n, stream)
					}
				}
				Soon(t, "nothing is in flight", func() bool { return app.Stats().Actions.InFlight == 0 })
			})
		}
		if app.Stats().Shed["slow-reader"] == 0 {
			t.Error("no slow reader is counted")
		}
	})
}

// A response that waits for its client is in flight, and continues when its window opens.
func TestStreamsInFlight(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine}, func(a *dunlin.App) { app = a; registerAnswers(a) })
		for _, path := range []string{"/large", "/std", "/stream"} {
			c := dialH2(t, addr)
			const streams = 5
			for i := range streams {
				c.get(uint32(2*i+1), path)
			}
			Soon(t, "all are in flight", func() bool { return app.Stats().Actions.InFlight == streams })
			for i := range streams {
				c.grant(uint32(2*i+1), 1<<20)
			}
			for got, ended := 0, 0; ended < streams; {
				kind, flags, _, n := c.next()
				if kind == frameData {
					got += n
				}
				if kind == frameReset || flags&flagEnd != 0 {
					if ended++; ended == streams && got != streams<<20 {
						t.Errorf("%s: got %d bytes, want %d", path, got, streams<<20)
					}
				}
			}
			Soon(t, "nothing is in flight", func() bool { return app.Stats().Actions.InFlight == 0 })
		}
	})
}

// Only the time in which a response waits for its client counts: a stream may be quiet for any time, and a client that reads a
// little now and then may continue.
func TestQuietStreams(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := NewGate()
		const quietTimeout = 500 * time.Millisecond
		addr, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine, Timeouts: dunlin.Timeouts{Write: quietTimeout, Body: 100 * time.Millisecond}}, func(app *dunlin.App) {
			registerAnswers(app)
			app.Get("/quiet", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					if _, err := io.WriteString(w, "first "); err != nil {
						return err
					}
					if err := dunlin.Flush(w); err != nil {
						return err
					}
					g.Pass()
					_, err := io.WriteString(w, "last")
					return err
				})
			})
			app.Post("/late", func(r *dunlin.Request) dunlin.Response {
				g.Pass() // the body is not read meanwhile, which is not the client's delay
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(string(body))
			})
		})
		var answers []chan string
		c, scheme := h2Client(t)
		ask := func(method, path, body string) {
			answer := make(chan string, 1)
			answers = append(answers, answer)
			go func() {
				req, err := http.NewRequest(method, scheme+addr+path, strings.NewReader(body))
				if err != nil {
					answer <- err.Error()
					return
				}
				resp, err := c.Do(req)
				if err != nil {
					answer <- err.Error()
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				answer <- fmt.Sprint(string(text), err)
			}()
			g.Await(t)
		}
		ask("GET", "/quiet", "")
		ask("POST", "/late", "body")
		slow := dialH2(t, addr)
		slow.get(1, "/large")
		// The client reads a piece ten times in each period: it would have to stall for nearly a period to be cut off.
		takes := time.NewTicker(quietTimeout / 10)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-takes.C:
					slow.grant(1, 16<<10)
				case <-stop:
					return
				}
			}
		}()
		for range 2 { // until clients that do not read have been cut off twice
			other := dialH2(t, addr)
			other.get(1, "/large")
			for kind := byte(frameData); kind != frameReset; {
				kind, _, _, _ = other.next()
			}
		}
		takes.Stop()
		close(stop)
		<-stopped
		g.Open <- struct{}{}
		g.Open <- struct{}{}
		for i, want := range []string{"first last<nil>", "body<nil>"} {
			if got := Await(t, "the answer", answers[i]); got != want {
				t.Errorf("answer %d: got %q, want %q", i, got, want)
			}
		}
		slow.grant(1, 1<<20)
		for {
			kind, flags, _, _ := slow.next()
			if kind == frameReset {
				t.Fatal("a client that took some of its answer all the time was cut off")
			}
			if flags&flagEnd != 0 {
				break
			}
		}
	})
}

// Over HTTP/2, too, a request whose body does not arrive gets a response.
func TestStreamBodies(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		config := dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine, Timeouts: dunlin.Timeouts{Body: 50 * time.Millisecond}, Limits: dunlin.Limits{MinBodyRate: 1 << 30, MaxBody: 1 << 40}}
		addr, _ := Start(t, config, func(a *dunlin.App) {
			app = a
			a.Post("/bytes", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
			a.HandleStd("POST", "/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				if problem, ok := errors.AsType[*dunlin.ProblemDetails](err); ok {
					w.WriteHeader(problem.Status)
				}
			}))
			a.HandleStd("POST", "/own", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
				_, err := io.ReadFull(r.Body, make([]byte, 8))
				_, _ = fmt.Fprint(w, err)
			}))
		})
		// Each client has its own connection: net/http closes one that receives much data for answered requests.
		post := func(c *http.Client, scheme, path string, body io.Reader) (status int, text string, err error) {
			resp, err := c.Post(scheme+addr+path, "text/plain", body)
			if err != nil {
				return 0, "", err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(b), err
		}
		for _, path := range []string{"/bytes", "/std"} {
			for name, endless := range map[string]bool{"silent": false, "slow": true} {
				t.Run(path[1:]+" "+name, func(t *testing.T) {
					c, scheme := h2Client(t)
					before := app.Stats().Shed["slow-body"]
					body, w := io.Pipe()
					defer body.Close()
					go func() {
						for _, err := io.WriteString(w, "some"); err == nil && endless; {
							_, err = io.WriteString(w, "more")
						}
					}()
					if status, text, err := post(c, scheme, path, body); status != http.StatusRequestTimeout || err != nil {
						t.Errorf("status %d, %q, %v; want a 408", status, text, err)
					}
					if n := app.Stats().Shed["slow-body"]; n != before+1 {
						t.Errorf("%d counted, want 1", n-before)
					}
				})
			}
		}
		t.Run("own deadline", func(t *testing.T) {
			c, scheme := h2Client(t)
			body, w := io.Pipe()
			var client sync.WaitGroup
			client.Go(func() {
				defer w.Close()
				_, _ = io.WriteString(w, "some")
				for range 2 { // until other streams were cut off
					slow, pipe := io.Pipe()
					status, text, err := post(c, scheme, "/bytes", slow)
					_ = pipe.Close()
					if status != http.StatusRequestTimeout || err != nil {
						t.Errorf("another: status %d, %q, %v; want a 408", status, text, err)
					}
				}
				_, _ = io.WriteString(w, "more")
			})
			status, text, err := post(c, scheme, "/own", body)
			_ = body.Close()
			client.Wait()
			if status != http.StatusOK || text != "<nil>" || err != nil {
				t.Errorf("got %d %q, %v; want the body to be read", status, text, err)
			}
		})
	})
}

// A stream that is refused or answered late does not end its connection, which other streams use.
func TestRefusedStreamsDoNotEndConnection(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{MaxBody: 1000}}, func(a *dunlin.App) {
			app = a
			a.Get("/late", func(r *dunlin.Request) dunlin.Response { <-r.Context().Done(); return dunlin.NoContent() }).Timeout(10 * time.Millisecond)
			a.Post("/body", func(r *dunlin.Request) dunlin.Response {
				_, err := r.Bytes()
				return dunlin.Error(err)
			})
		})
		c, scheme := h2Client(t)
		for range 3 {
			resp, _ := Get(t, c, scheme+addr+"/late")
			if resp.StatusCode != 503 || resp.ProtoMajor != 2 {
				t.Errorf("late: got %s %s", resp.Proto, resp.Status)
			}
			resp, err := c.Post(scheme+addr+"/body", "", strings.NewReader(strings.Repeat("x", 5000)))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 413 {
				t.Errorf("too large: got %s", resp.Status)
			}
		}
		if n := app.Stats().Connections.Accepted; n != 1 {
			t.Errorf("%d connections were made for one client", n)
		}
	})
}
