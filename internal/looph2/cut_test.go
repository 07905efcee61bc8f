package looph2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// An answer that is shorter than announced, because its file was truncated meanwhile, is reset and has no end.
func TestTruncatedFileResetsStream(t *testing.T) {
	onLoop(t)
	const size, left = 1_000_000, 200_000
	name := filepath.Join(t.TempDir(), "file")
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/file", func(*dunlin.Request) dunlin.Response { return dunlin.File(name) })
		app.HandleStd("GET", "/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			f, err := os.Open(name)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = f.Close() }()
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = io.Copy(w, f)
		}))
	})
	for _, path := range []string{"/file", "/std"} {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		c := newH2Conn(t, s.addr)
		_ = c.frame(frameSettings, 1, 0)
		c.request(1, true, "GET", path)
		u := &tunnel{h2Conn: c, settings: make(map[uint16]uint32)}
		for len(u.data) < 64<<10-1 { // as much as the windows let out
			u.step()
		}
		if err := os.Truncate(name, left); err != nil {
			t.Fatal(err)
		}
		for _, stream := range []uint32{0, 1} {
			_ = c.frame(8, 0, stream, binary.BigEndian.AppendUint32(nil, 2*size)...)
		}
		for !u.ended && !u.reset {
			u.step()
		}
		if u.ended || len(u.data) != left {
			t.Errorf("%s: got %d bytes of %d, end %v, reset %v", path, len(u.data), size, u.ended, u.reset)
		}
	}
}

// If a handler writes less than it has announced, its stream is reset. The connection and its other streams continue. The
// connection ends only if the handler requests it.
func TestShortHandlerOutputResetsStream(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		short := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			if r.URL.Path == "/flushed" {
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, "short")
		}
		for _, path := range []string{"/short", "/flushed"} {
			app.HandleStd("GET", path, http.HandlerFunc(short))
		}
		app.HandleStd("GET", "/close", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "ended")
		}))
		app.Get("/more", func(*dunlin.Request) dunlin.Response { return dunlin.Text("more") })
	})
	c := newH2Conn(t, s.addr)
	_ = c.frame(frameSettings, 1, 0)
	ask := func(stream uint32, path string) (frames []byte, text string) {
		c.request(stream, true, "GET", path)
		u := &tunnel{h2Conn: c, stream: stream, settings: make(map[uint16]uint32)}
		for !u.ended && !u.reset {
			frames = append(frames, u.step())
		}
		return frames, string(u.data)
	}
	for i, path := range []string{"/short", "/flushed", "/more"} {
		frames, text := ask(uint32(2*i+1), path)
		want, last := "short", byte(frameReset)
		if path == "/more" {
			want, last = "more", 0
		}
		if text != want || frames[len(frames)-1] != last || bytes.IndexByte(frames, frameGoAway) >= 0 {
			t.Errorf("%s: got %q, frames %v", path, text, frames)
		}
	}
	if frames, text := ask(7, "/close"); text != "ended" || bytes.IndexByte(frames, frameGoAway) < 0 {
		t.Errorf("/close: got %q, frames %v", text, frames)
	}
}

// A goroutine that still reads the body when its action has returned gets an error.
func TestBodyReadAfterActionFails(t *testing.T) {
	onLoop(t)
	reads, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Handle("CONNECT", "/tunnel", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Stream("", func(w io.Writer) error {
				body := r.Body()
				go func() {
					close(reads)
					_, err := body.Read(make([]byte, 1))
					ended <- err
				}()
				if err := dunlin.Flush(w); err != nil {
					return err
				}
				<-leave
				return nil
			})
		})
	})
	u := openTunnel(newH2Conn(t, s.addr), "/tunnel")
	<-reads
	close(leave)
	for !u.ended && !u.reset {
		u.step()
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a byte that was not sent was read")
		}
	case <-time.After(patience):
		t.Error("the reader waits for ever")
	}
}

// Fields of the connection, and 101, have no place in HTTP/2: they are left out.
func TestConnectionFieldsAreOmitted(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		set := func(h http.Header) {
			for _, name := range []string{"Connection", "Upgrade", "Keep-Alive", "Proxy-Connection", "X-Kept"} {
				h.Set(name, "upgrade")
			}
		}
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/fields", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				set(w.Header())
				w.WriteHeader(http.StatusEarlyHints)
				_, _ = io.WriteString(w, "body")
			}))
			app.Mount("/flushed", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				set(w.Header())
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, "body")
			}))
			for path, then := range map[string]func(w http.ResponseWriter){
				"/switches":         func(http.ResponseWriter) {},
				"/switches/flushes": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
				"/switches/writes":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "body") },
			} {
				app.HandleStd("GET", path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Upgrade", "websocket")
					w.WriteHeader(http.StatusSwitchingProtocols)
					then(w)
				}))
			}
		})
		only := func(h http.Header) error {
			for _, name := range []string{"Connection", "Upgrade", "Keep-Alive", "Proxy-Connection"} {
				if h.Get(name) != "" {
					return fmt.Errorf("%s: %s", name, h.Get(name))
				}
			}
			if h.Get("X-Kept") == "" {
				return errors.New("no X-Kept")
			}
			return nil
		}
		for _, path := range []string{"/fields", "/flushed"} {
			interim := 0
			trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				interim++
				return only(http.Header(h))
			}}
			req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", "http://"+s.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Do(req)
			if err != nil {
				t.Fatal(path, err)
			}
			_ = resp.Body.Close()
			if err := only(resp.Header); err != nil || resp.StatusCode != 200 || path == "/fields" && interim != 1 {
				t.Errorf("%s: got %d after %d others, %v", path, resp.StatusCode, interim, err)
			}
		}
		for _, path := range []string{"/switches", "/switches/flushes", "/switches/writes"} {
			if status, text := s.get(path); status != 0 || !strings.Contains(text, "INTERNAL_ERROR") {
				t.Errorf("%s: got %d %q", path, status, text)
			}
		}
	})
}

// The rest of a body that its handler has closed is discarded while it arrives: the client can send all of it.
func TestClosedBodiesAreDiscarded(t *testing.T) {
	onLoop(t)
	sent := make(chan struct{})
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, r.Body) // a Read that waits fails, too
				read <- err
			}()
			_ = r.Body.Close()
			<-sent
			_, err := r.Body.Read(make([]byte, 1))
			_, _ = fmt.Fprint(w, errors.Is(err, http.ErrBodyReadAfterClose), " ", errors.Is(<-read, http.ErrBodyReadAfterClose))
		}))
	})
	for range 3 {
		body, w := io.Pipe()
		go func() {
			for range 100 {
				_, _ = w.Write(make([]byte, 100_000))
			}
			sent <- struct{}{}
			_ = w.Close()
		}()
		status, text := s.post("/", body)
		want(t, status, text, 200, "true true")
	}
	if m := s.app.Stats().Memory; m.HeldPeak > 1<<20 {
		t.Errorf("%d bytes were held", m.HeldPeak)
	}
}

// A deadline for writing that passed while a write was pending cuts the answer off, and cannot be extended, as on net/http's
// server. The client receives everything written before.
func TestPassedWriteDeadlineCannotBeExtended(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			_, _ = io.WriteString(w, "one")
			if err := control.Flush(); err != nil {
				t.Errorf("%s: Flush before: %v", r.URL.Path, err)
			}
			if err := control.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Errorf("%s: %v", r.URL.Path, err)
			}
			if r.URL.Path != "/written" {
				return
			}
			for _, later := range []time.Duration{-time.Second, time.Hour} {
				if err := control.SetWriteDeadline(time.Now().Add(later)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(w, "two")
				if err := control.Flush(); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Flush with %v left: %v", later, err)
				}
			}
		}))
	})
	for _, path := range []string{"/written", "/ended"} {
		c := newH2Conn(t, s.addr)
		_ = c.frame(frameSettings, 1, 0)
		c.request(1, true, "GET", path)
		u := &tunnel{h2Conn: c, settings: make(map[uint16]uint32)}
		for !u.ended && !u.reset {
			u.step()
		}
		if string(u.data) != "one" || u.ended {
			t.Errorf("%s: got %q, end %v, reset %v", path, u.data, u.ended, u.reset)
		}
	}
}

// An answer that has announced trailers and was not flushed has a length, too, as on net/http's server of HTTP/2.
func TestTrailersWithContentLength(t *testing.T) {
	onLoop(t)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-After")
			_, _ = io.WriteString(w, "body")
			if r.URL.Path == "/flushed" {
				_ = http.NewResponseController(w).Flush()
			}
			w.Header().Set("X-After", "after")
		}))
	})
	for path, length := range map[string]int64{"/": 4, "/flushed": -1} {
		resp, err := s.Get("http://" + s.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "body" || err != nil || resp.ContentLength != length || resp.Trailer.Get("X-After") != "after" {
			t.Errorf("%s: got %q (%v), length %d, trailers %v", path, body, err, resp.ContentLength, resp.Trailer)
		}
	}
}
