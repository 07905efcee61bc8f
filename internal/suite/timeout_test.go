package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

// Repeated late actions do not flood the log, regardless of their responses.
func TestLateActionLogIsRateLimited(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const all = 20
		var returned atomic.Int64
		began := time.Now()
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				defer returned.Add(1)
				<-r.Context().Done()
				return dunlin.Error(fmt.Errorf("loading: %w", r.Context().Err()))
			}).Timeout(time.Millisecond)
		})
		for range all {
			if resp, body := sendTo(t, "GET", "http://"+addr+"/late", ""); resp.StatusCode != 503 || body != problemLate {
				t.Errorf("answered %d %s", resp.StatusCode, body)
			}
		}
		Soon(t, "all have returned", func() bool { return returned.Load() == all })
		WantLogged(t, logs, "took too long")
		if n := strings.Count(logs.String(), "level=ERROR"); n > 2+int(time.Since(began)/time.Second) {
			t.Errorf("%d lines for %d late actions:\n%s", n, all, logs.String())
		}
	})
}

const problemLate = `{"title":"Service Unavailable","status":503,"detail":"the request took too long"}`

func TestTimeoutRespondsWhileActionRuns(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		release, ended := make(chan struct{}), make(chan error, 4)
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
			slow := app.WithTimeout(20 * time.Millisecond)
			slow.Handle("GET,POST", "/slow/{id}", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					ended <- err
					return dunlin.Error(err)
				}
				<-release
				// The request is still complete, and its context has ended.
				if r.Param("id") != "7" || r.Header("X-Test") != "kept" || string(body) != "body" {
					ended <- fmt.Errorf("the late action reads %q, %q, %q", r.Param("id"), r.Header("X-Test"), body)
				}
				ended <- r.Context().Err()
				return dunlin.Text("late").Header("X-Late", "1")
			})
		})
		resp, body := sendTo(t, "POST", "http://"+addr+"/slow/7", "body")
		if resp.StatusCode != http.StatusServiceUnavailable || body != problemLate || !resp.Close {
			t.Errorf("answered %d %s (close: %v)", resp.StatusCode, body, resp.Close)
		}
		if resp, body = sendTo(t, "GET", "http://"+addr+"/quick", ""); resp.StatusCode != 200 || body != "quick" {
			t.Errorf("another request meanwhile: got %d %s", resp.StatusCode, body)
		}
		close(release)
		if err := <-ended; err == nil || strings.Contains(err.Error(), "reads") {
			t.Errorf("the late action found %v", err)
		}
		Soon(t, "it is logged", func() bool {
			return strings.Contains(logs.String(), "took too long") && strings.Contains(logs.String(), "/slow/{id}")
		})
	})
}

// The body may still be arriving when the timeout expires: this is not logged as the client's error.
func TestTimeoutWhileReceivingBody(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, RouteStats: stats.On}, func(a *dunlin.App) {
			app = a
			slow := a.WithTimeout(10 * time.Millisecond)
			slow.Post("/bytes", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
			slow.Post("/stream", func(r *dunlin.Request) dunlin.Response {
				if _, err := io.Copy(io.Discard, r.Body()); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
			slow.Post("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					w.WriteHeader(http.StatusTeapot)
				}
			})))
		})
		const times = 20
		for _, path := range []string{"/bytes", "/stream", "/std"} {
			for n := range times {
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, Request("POST "+path, fmt.Sprintf("Content-Length: %d", 100_000+100_000*(n%2)))+strings.Repeat("x", 5000*(n%3)))
				got, err := ReadAnswer(bufio.NewReader(conn), "POST")
				if err != nil || got[9:12] != "503" || !strings.Contains(got, problemLate) {
					t.Errorf("%s, %d: got %q, %v", path, n, got, err)
				}
				_ = conn.Close()
			}
		}
		for _, route := range app.Stats().Routes {
			if route.Timeouts != times {
				t.Errorf("%s: got %d timeouts, want %d", route.Pattern, route.Timeouts, times)
			}
		}
	})
}

// Observers that take longer than the timeout do not make a timely action late, and are called once.
func TestTimeoutEndsBeforeObservers(t *testing.T) {
	ends := map[string]func(wait func()) dunlin.Action{
		"/answer": func(wait func()) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { wait(); return dunlin.Text("ok") }
		},
		"/stream": func(wait func()) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { wait(); _, err := io.WriteString(w, "ok"); return err })
			}
		},
		"/std": func(wait func()) dunlin.Action {
			return dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { wait(); _, _ = io.WriteString(w, "ok") }))
		},
		"/panic": func(wait func()) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { wait(); panic("this is a test") }
		},
		"/exit": func(wait func()) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { wait(); runtime.Goexit(); return dunlin.Empty() }
		},
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 20*time.Millisecond, func(limit time.Duration) error { // an action returns within it
			told := make(chan string, 100)
			addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
				app.Install(dunlin.Hooks{Observe: func(i *dunlin.AnswerInfo) {
					<-time.After(2 * limit)
					told <- fmt.Sprintf("%s %d", i.Path(), i.Status())
				}})
				for path, action := range ends {
					if path == "/exit" && engine == dunlin.EngineStd {
						continue
					}
					app.Get("/quick"+path, action(func() {})).Timeout(limit)
					app.Get("/blocking"+path, action(func() { <-time.After(limit / 4) })).Timeout(limit)
				}
			})
			for path := range ends {
				for _, path := range []string{"/quick" + path, "/blocking" + path, "/blocking" + path} { // the last by a worker
					want := 200
					if strings.HasSuffix(path, "/panic") || strings.HasSuffix(path, "/exit") {
						want = 500
					}
					if engine == dunlin.EngineStd && strings.HasSuffix(path, "/exit") {
						continue
					}
					resp, _ := sendTo(t, "GET", "http://"+addr+path, "")
					if got := Await(t, "the call of an observer", told); got != fmt.Sprintf("%s %d", path, resp.StatusCode) {
						return fmt.Errorf("%s: observers got %q, the client got %d", path, got, resp.StatusCode)
					}
					if resp.StatusCode == 503 {
						return Late(path)
					}
					if resp.StatusCode != want {
						return fmt.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
					}
				}
			}
			select {
			case more := <-told:
				return fmt.Errorf("observers were called once more: %s", more)
			case <-time.After(3 * limit):
				return nil
			}
		})
	})
}

func sendTo(t *testing.T, method, url, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test", "kept")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp, Body(t, resp)
}

// The timeout holds until the response begins, by the action or by its stream.
func TestTimeoutKeepsStartedResponse(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 50*time.Millisecond, func(limit time.Duration) error { // the response begins within it
			long := func(w io.Writer, flush func() error) error {
				if _, err := io.WriteString(w, "first "); err != nil {
					return err
				}
				if err := flush(); err != nil {
					return err
				}
				<-time.After(limit + 50*time.Millisecond) // the deadline must have been cleared
				_, err := io.WriteString(w, "second")
				return err
			}
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Action: limit}, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
				app.Get("/stream", func(*dunlin.Request) dunlin.Response {
					return dunlin.Stream("text/plain", func(w io.Writer) error {
						return long(w, func() error { return dunlin.Flush(w) })
					})
				})
				app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_ = long(w, http.NewResponseController(w).Flush)
				})))
			})
			for _, path := range []string{"/stream", "/std"} {
				resp, body := sendTo(t, "GET", "http://"+addr+path, "")
				if resp.StatusCode == 503 && body == problemLate {
					return Late(path + ": " + body)
				}
				if resp.StatusCode != 200 || body != "first second" {
					return fmt.Errorf("%s: %d %q", path, resp.StatusCode, body)
				}
			}
			return nil
		})
	})
}

// A late standard handler does not affect its connection.
func TestTimeoutDisablesWriter(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		release, wrote := make(chan struct{}), make(chan error, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-release
				_, err := w.Write([]byte(strings.Repeat("late ", 100_000)))
				wrote <- errors.Join(err, http.NewResponseController(w).Flush())
			}))).Timeout(10 * time.Millisecond)
		})
		if resp, body := sendTo(t, "GET", "http://"+addr+"/std", ""); resp.StatusCode != 503 || body != problemLate {
			t.Errorf("got %d %.100q", resp.StatusCode, body)
		}
		close(release)
		if err := <-wrote; err == nil {
			t.Error("the late handler wrote without an error")
		}
	})
}

// Many late actions under load: each response is complete and belongs to its request.
func TestTimeoutsUnderLoad(t *testing.T) {
	const total = 800
	load := func(t *testing.T, engine dunlin.Engine) {
		var late, done atomic.Int64
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Get("/maybe/{token}", func(r *dunlin.Request) dunlin.Response {
				token := r.Param("token")
				if strings.HasSuffix(token, "-slow") {
					<-r.Context().Done() // returns at the moment of the timeout
				}
				done.Add(1)
				return dunlin.JSON(map[string]string{"token": token}).Header("X-Token", token)
			}).Timeout(3 * time.Millisecond)
		})
		const clients = 32
		var wg sync.WaitGroup
		client := &http.Client{Transport: NewTransport()}
		client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
		defer client.CloseIdleConnections()
		for c := range clients {
			wg.Go(func() {
				for i := range 2 * total / clients {
					token := fmt.Sprintf("%d-%d", c, i)
					if i%2 == 0 {
						token += "-slow"
					}
					resp, err := client.Get("http://" + addr + "/maybe/" + token)
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					switch {
					case err != nil:
						t.Error(err)
					case resp.StatusCode == http.StatusServiceUnavailable && string(body) == problemLate:
						late.Add(1)
					case resp.StatusCode != http.StatusOK || resp.Header.Get("X-Token") != token || string(body) != `{"token":"`+token+`"}`:
						t.Errorf("%s was answered %d %q with token %q", token, resp.StatusCode, body, resp.Header.Get("X-Token"))
					}
				}
			})
		}
		wg.Wait()
		if late.Load() == 0 {
			t.Error("no action was late")
		}
		if t.Failed() {
			t.Logf("%d late, %d ended", late.Load(), done.Load())
		}
	}
	for _, a := range []Adapter{std, loop, loopOverTLS} { // one after the other: each uses all processors
		a.On(t, load)
	}
}
