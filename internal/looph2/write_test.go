package looph2_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// The slice of a Write belongs to its caller again when it returns, also when the client leaves in the middle; files arrive
// entirely.
func TestLargeWrites(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		file := make([]byte, 300_001)
		for i := range file {
			file[i] = byte(i) ^ byte(i>>9)
		}
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		const size, writes = 100_000, 20
		failed := make(chan error, 1)
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/file", func(*dunlin.Request) dunlin.Response { return dunlin.File(name) })
			app.Get("/writes", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("", func(w io.Writer) error {
					buf := make([]byte, size)
					for i := 0; i < writes || r.RawQuery() != ""; i++ {
						for k := range buf {
							buf[k] = byte(i)
						}
						if n, err := w.Write(buf[:size-i%7]); err != nil || n != size-i%7 {
							for k := range buf {
								buf[k] = 0xee
							}
							failed <- err
							return err
						}
					}
					return nil
				})
			})
		})
		want := sha256.New()
		for i := range writes {
			want.Write(bytes.Repeat([]byte{byte(i)}, size-i%7))
		}
		for range 3 {
			status, body := s.get("/writes")
			if got := sha256.Sum256([]byte(body)); status != 200 || !bytes.Equal(got[:], want.Sum(nil)) {
				t.Errorf("%d: got %d bytes that differ from the written ones", status, len(body))
			}
			if status, body := s.get("/file"); status != 200 || body != string(file) {
				t.Errorf("%d: got %d bytes, not the file", status, len(body))
			}
		}
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+"/writes?endless", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, resp.Body, 5*size); err != nil {
				t.Error(err)
			}
			cancel()
			_ = resp.Body.Close()
			if err := <-failed; err == nil {
				t.Error("a Write to a closed stream does not fail")
			}
		}
	})
}

// An answer whose handler exceeds the deadline for writing does not end as complete, however much of it was sent.
func TestAnswerBeyondWriteDeadlineIsIncomplete(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		var served *dunlin.App
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			served = app
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				if r.URL.Path == "/begun" {
					_, _ = io.WriteString(w, "one")
					_ = c.Flush()
				}
				if err := c.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
					t.Error(err)
				}
				switch r.URL.Path {
				case "/long":
					if _, err := w.Write(make([]byte, 100_000)); err == nil || engine == dunlin.EngineLoop && !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("Write: %v", err)
					}
				case "/blocked":
					for engine == dunlin.EngineLoop && served.Stats().Actions.Takeovers == 0 {
						runtime.Gosched() // until another driver has the loop
					}
				}
				_, _ = io.WriteString(w, "two")
			}))
		})
		for _, path := range []string{"/short", "/blocked", "/long", "/begun"} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Do(req)
			if err != nil {
				continue // reset before its head
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				t.Errorf("%s: got %d, the whole of %q", path, resp.StatusCode, body)
			}
		}
	})
}
