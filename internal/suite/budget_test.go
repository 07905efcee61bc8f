package suite

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// smallMemory is a memory limit below the memory of any program. It leaves a budget of 1 MiB.
const smallMemory, smallBudget = 1 << 20, 1 << 20

// startSmall is Start with a memory budget of 1 MiB and an action that reads the complete body.
func startSmall(t *testing.T, engine dunlin.Engine) (app *dunlin.App, addr string) {
	t.Helper()
	config := dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}}
	addr, _ = Start(t, config, func(a *dunlin.App) {
		app = a
		a.Post("/length", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body)))
		})
	})
	if got := app.Stats().Memory.Budget; got != smallBudget {
		t.Fatalf("the budget is %d bytes, want %d", got, smallBudget)
	}
	return app, addr
}

// upload sends a body and returns status, Retry-After and text of the answer.
func upload(t *testing.T, addr string, body io.Reader) (status int, retry, text string) {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone() // dials over TLS if the adapter does
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("http://"+addr+"/length", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Retry-After"), Body(t, resp)
}

// A body larger than the budget is refused with 413 and not buffered. A body of unknown length may first fill the rest of the
// budget.
func TestBodyLargerThanBudgetIs413(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startSmall(t, engine)
		for _, c := range []struct {
			name string
			body io.Reader
		}{
			{"announced", strings.NewReader(strings.Repeat("x", 3<<20))},
			{"chunked", io.LimitReader(strings.NewReader(strings.Repeat("x", 3<<20)), 3<<20)},
		} {
			status, _, text := upload(t, addr, c.body)
			refused := status == http.StatusRequestEntityTooLarge || status == http.StatusServiceUnavailable && c.name == "chunked"
			if !refused || !strings.Contains(text, "memory budget of 1024 KiB") {
				t.Errorf("%s: got %d %s; want 413 and the limit", c.name, status, text)
			}
		}
		most := int64(smallBudget)
		if _, secured := securedAddrs.Load(addr); secured {
			most += 64 << 10 // records that were received with the last part are held already
		}
		if peak := app.Stats().Memory.HeldPeak; peak > most {
			t.Errorf("held %d bytes at most, of a budget of %d", peak, smallBudget)
		}
	})
}

// If two bodies do not fit together, the one that holds more memory for a longer time is evicted. Its client is informed, and
// the other body waits until then.
func TestLargestHolderIsEvictedForBody(t *testing.T) {
	const size = 700 << 10
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startSmall(t, engine)
		first := Dial(t, addr)
		if _, err := fmt.Fprintf(first, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size-1)); err != nil {
			t.Fatal(err)
		}
		Soon(t, "the first body is held", func() bool { return app.Stats().Memory.HeldFor["body"] >= size })
		if s := app.Stats().Memory; s.Holders != 1 || len(s.Largest) != 1 || s.Largest[0].Held < size || s.Largest[0].Remote != first.LocalAddr().String() {
			t.Errorf("the largest holders: got %+v", s)
		}

		status, _, text := upload(t, addr, strings.NewReader(strings.Repeat("x", size)))
		if status != http.StatusOK || text != fmt.Sprint(size) {
			t.Errorf("the second: %d: got %s", status, text)
		}
		resp, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "memory budget of 1024 KiB") {
			t.Errorf("the first: got %v, %s, %v; want 503 and the limit", resp, body, err)
		}
		if s := app.Stats(); s.Shed["largest-holder"] != 1 {
			t.Errorf("counted: got %v", s.Shed)
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// A body waits while actions hold all memory. The statistics report the wait.
func TestBodyWaitsForMemory(t *testing.T) {
	testBodyWithoutMemory(t, 0, func(t *testing.T, app *dunlin.App, others *sync.WaitGroup, release func()) {
		Soon(t, "the others wait", func() bool { return app.Stats().Memory.Waiting == 2 })
		Soon(t, "the statistics have the time", func() bool { return app.Stats().Memory.WaitingFor > 0 })
		release()
		others.Wait()
		if s := app.Stats(); s.Memory.Waiting != 0 || s.Memory.WaitingFor != 0 || s.Memory.Refused != 0 || s.Shed["no-memory"] != 0 {
			t.Errorf("got %+v, %v", s.Memory, s.Shed)
		}
	})
}

// After Timeouts.Memory it is refused. The statistics report the refusal, which is not logged as a failure of the service.
func TestBodyWithoutMemoryIs503(t *testing.T) {
	testBodyWithoutMemory(t, time.Millisecond, func(t *testing.T, app *dunlin.App, others *sync.WaitGroup, release func()) {
		others.Wait()
		if s := app.Stats(); s.Memory.Waiting != 0 || s.Memory.WaitingFor != 0 || s.Memory.Refused != 2 || s.Shed["no-memory"] != 2 || s.Shed["largest-holder"] != 0 {
			t.Errorf("got %+v, %v", s.Memory, s.Shed)
		}
		release()
	})
}

// testBodyWithoutMemory calls then while an action holds most of the memory, and two other requests need as much for their bodies. The
// others are refused after a time, 0 for the default.
func testBodyWithoutMemory(t *testing.T, after time.Duration, then func(t *testing.T, app *dunlin.App, others *sync.WaitGroup, release func())) {
	const size = 600 << 10
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		entered, leave := make(chan struct{}, 3), make(chan struct{})
		var app *dunlin.App
		config := dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}, Timeouts: dunlin.Timeouts{Memory: after}}
		addr, logs := Start(t, config, func(a *dunlin.App) {
			app = a
			a.Post("/length", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				entered <- struct{}{}
				<-leave
				return dunlin.Text(fmt.Sprint(len(body)))
			})
		})
		first := make(chan int, 1)
		go func() {
			resp, err := http.Post("http://"+addr+"/length", "", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				first <- 0
				return
			}
			defer resp.Body.Close()
			first <- resp.StatusCode
		}()
		Await(t, "the first action", entered)
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() {
				status, retry, text := upload(t, addr, strings.NewReader(strings.Repeat("x", size)))
				switch {
				case after == 0 && status != http.StatusOK:
					t.Errorf("%d: got %s", status, text)
				case after > 0 && (status != http.StatusServiceUnavailable || retry == "" || !strings.Contains(text, "memory budget of 1024 KiB")):
					t.Errorf("%d, Retry-After %q: got %s; want 503 and the limit", status, retry, text)
				}
			})
		}
		then(t, app, &others, func() { close(leave) })
		if status := <-first; status != http.StatusOK {
			t.Errorf("the first: got %d", status)
		}
		if text := logs.String(); text != "" {
			t.Errorf("logged at level Error:\n%s", text)
		}
	})
}
