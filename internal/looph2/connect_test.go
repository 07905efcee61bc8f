package looph2_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A tunnel is the client's side of an extended CONNECT (RFC 8441): it collects the data of a stream after the head.
type tunnel struct {
	*h2Conn
	stream   uint32 // 0 stands for 1
	settings map[uint16]uint32
	data     []byte
	ended    bool
	reset    bool
}

// openTunnel requests a protocol and waits for the head of the answer.
func openTunnel(c *h2Conn, path string) *tunnel {
	c.t.Helper()
	_ = c.frame(frameSettings, 1, 0)
	c.fields(1, false, ":method", "CONNECT", ":protocol", "chat", ":scheme", "http", ":path", path, ":authority", "h.example")
	u := &tunnel{h2Conn: c, settings: make(map[uint16]uint32)}
	for u.step() != frameHeaders {
	}
	return u
}

// step reads a frame.
func (u *tunnel) step() byte {
	u.t.Helper()
	var head [9]byte
	if _, err := io.ReadFull(u, head[:]); err != nil {
		u.t.Fatalf("the connection ends: %v", err)
	}
	payload := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(u, payload); err != nil {
		u.t.Fatal(err)
	}
	stream := binary.BigEndian.Uint32(head[5:])
	switch head[3] {
	case frameSettings:
		for p := payload; len(p) > 0; p = p[6:] {
			u.settings[binary.BigEndian.Uint16(p)] = binary.BigEndian.Uint32(p[2:])
		}
	case 0:
		u.data = append(u.data, payload...)
	case frameReset:
		u.reset = true
	}
	if stream == max(u.stream, 1) && head[3] <= 1 && head[4]&1 != 0 {
		u.ended = true
	}
	return head[3]
}

func (u *tunnel) want(text string) {
	u.t.Helper()
	for len(u.data) < len(text) && !u.ended && !u.reset {
		u.step()
	}
	if string(u.data) != text {
		u.t.Fatalf("got %q, want %q", u.data, text)
	}
	u.data = nil
}

// An extended CONNECT gives an action, or a standard handler, a stream that both sides use at the same time. Its body is never
// too slow and has no length, and other streams continue meanwhile.
func TestExtendedConnect(t *testing.T) {
	onLoop(t)
	seen := make(chan string, 10)
	chat := func(body io.Reader, w io.Writer, flush func() error) error {
		if err := flush(); err != nil {
			return err
		}
		for lines := bufio.NewReader(body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return err
			}
			if line == "bye\n" {
				return nil
			}
			if _, err := io.WriteString(w, "you said "+line); err != nil {
				return err
			}
			if err := flush(); err != nil {
				return err
			}
		}
	}
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxBody: 64}, Timeouts: dunlin.Timeouts{Body: 60 * time.Millisecond}}, func(app *dunlin.App) {
		app.Handle("CONNECT", "/native/{room}", func(r *dunlin.Request) dunlin.Response {
			seen <- fmt.Sprint(r.Method(), " ", r.Path(), " ", r.Header(":protocol"), " ", r.Param("room"))
			return dunlin.Stream("", func(w io.Writer) error {
				return chat(r.Body(), w, func() error { return dunlin.Flush(w) })
			})
		})
		app.HandleStd("CONNECT", "/std/{room}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get(":protocol"), " ", r.PathValue("room"))
			w.WriteHeader(200)
			_ = chat(r.Body, w, http.NewResponseController(w).Flush)
		}))
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
		app.Handle("CONNECT", "/refused", func(*dunlin.Request) dunlin.Response { return dunlin.Text("no").Status(403) })
	})
	for _, kind := range []string{"native", "std"} {
		t.Run(kind, func(t *testing.T) {
			c := newH2Conn(t, s.addr)
			u := openTunnel(c, "/"+kind+"/blue")
			if u.settings[8] != 1 {
				t.Errorf("SETTINGS_ENABLE_CONNECT_PROTOCOL is %d", u.settings[8])
			}
			if got, want := <-seen, "CONNECT /"+kind+"/blue chat blue"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			for i := range 20 { // more than MaxBody, and slower than BodyTimeout allows
				_ = c.frame(0, 0, 1, fmt.Appendf(nil, "word %d\n", i)...)
				u.want(fmt.Sprintf("you said word %d\n", i))
				if i == 10 {
					slow := time.NewTimer(150 * time.Millisecond) // nothing must happen in this time
					<-slow.C
				}
			}
			status, body := s.get("/quick")
			want(t, status, body, 200, "quick")
			_ = c.frame(0, 0, 1, []byte("bye\n")...)
			for !u.ended && !u.reset {
				u.step()
			}
			if len(u.data) > 0 || !u.ended {
				t.Errorf("then %q, end %v, reset %v", u.data, u.ended, u.reset)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		u := openTunnel(newH2Conn(t, s.addr), "/refused")
		u.want("no")
	})
	t.Run("gathered", func(t *testing.T) { // a gathered body is bounded by MaxBody
		patient := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxBody: 64}}, func(app *dunlin.App) {
			app.Handle("CONNECT", "/bytes", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("all of it")
			})
		})
		c := newH2Conn(t, patient.addr)
		_ = c.frame(frameSettings, 1, 0)
		c.fields(1, false, ":method", "CONNECT", ":protocol", "chat", ":scheme", "http", ":path", "/bytes", ":authority", "h.example")
		_ = c.frame(0, 1, 1, make([]byte, 65)...)
		u := &tunnel{h2Conn: c, settings: make(map[uint16]uint32)}
		for !u.ended && !u.reset {
			u.step()
		}
		if !strings.Contains(string(u.data), "413") {
			t.Errorf("got %q, want a 413 problem", u.data)
		}
	})
	t.Run("left", func(t *testing.T) { // startH2 checks that nothing is held then
		u := openTunnel(newH2Conn(t, s.addr), "/native/red")
		<-seen
		_ = u.Close()
	})
}

// If no route is for CONNECT, browsers are not offered WebSockets by extended CONNECT.
func TestExtendedConnectIsNotOffered(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Handle("*", "/any", func(*dunlin.Request) dunlin.Response { return dunlin.Text("any") })
	})
	c := newH2Conn(t, s.addr)
	_ = c.frame(frameSettings, 1, 0)
	c.fields(1, false, ":method", "CONNECT", ":protocol", "chat", ":scheme", "http", ":path", "/any", ":authority", "h.example")
	u := &tunnel{h2Conn: c, settings: make(map[uint16]uint32)}
	for !u.reset {
		u.step()
	}
	if _, offered := u.settings[8]; offered {
		t.Error("SETTINGS_ENABLE_CONNECT_PROTOCOL is sent")
	}
}
