package suite

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

var observedTime = flag.Duration("observed", 300*time.Millisecond, "how long TestObservedAnswers sends requests, for each engine")

// toldStatuses has the statuses that observers saw for each request, by number.
type toldStatuses struct {
	mu  sync.Mutex
	all map[string][]int // statuses
}

func (o *toldStatuses) record(n string, status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[n] = append(o.all[n], status)
}

// remove removes and returns the statuses that observers saw for a request.
func (o *toldStatuses) remove(n string) []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.all[n]
	delete(o.all, n)
	return told
}

// registerObserved adds routes that respond in each way, with and without a timeout. The responses end with the number of the
// request, which a feature also sets in a header.
func registerObserved(app *dunlin.App, o *toldStatuses) {
	number := func(r *http.Request) string { return r.Header.Get("X-N") }
	nap := func() {
		if rand.IntN(2) == 0 {
			<-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond)
		}
	}
	text := strings.Repeat("x", 20_000)
	app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		return resp.Header("X-N", info.Header("X-N"))
	}})
	app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
		nap()
		o.record(info.Header("X-N"), info.Status())
	}})
	actions := map[string]dunlin.Action{
		"quick": func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Header("X-N")) },
		"block": func(r *dunlin.Request) dunlin.Response { nap(); return dunlin.Text(text + r.Header("X-N")) },
		"body": func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			nap()
			return dunlin.Text(r.Header("X-N"))
		},
		"stream": func(r *dunlin.Request) dunlin.Response {
			n := r.Header("X-N")
			return dunlin.Stream("text/plain", func(w io.Writer) error { nap(); _, err := io.WriteString(w, text+n); return err })
		},
		"std": dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			nap()
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, text+number(r))
		})),
		"panic": func(*dunlin.Request) dunlin.Response { nap(); panic("this is a test") },
	}
	for path, action := range actions {
		for _, method := range []string{"GET", "POST"} {
			app.Handle(method, "/"+path, action)
			app.Handle(method, "/limited/"+path, action).Timeout(2 * time.Millisecond)
		}
	}
}

// Observers see each request once, with the status that its client got, over HTTP/1.1 and HTTP/2, although timeouts expire
// and clients disconnect meanwhile. Longer and with -race: go test -race ./internal/suite -run ObservedAnswers -observed 1m
func TestObservedAnswers(t *testing.T) {
	paths := []string{"quick", "block", "body", "stream", "std", "panic"}
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		o := &toldStatuses{all: make(map[string][]int)}
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{QueueTarget: -1, MaxConcurrent: 1000}}, func(a *dunlin.App) {
			app = a
			registerObserved(a, o)
		})
		h2, scheme := h2Client(t)
		h1 := &http.Client{Transport: NewTransport(), Timeout: Patience}
		t.Cleanup(h1.CloseIdleConnections)
		var all sync.WaitGroup
		var asked, answered atomic.Int64
		end := time.Now().Add(*observedTime)
		for i := range 12 {
			client, prefix := h2, scheme+addr
			if i%3 == 0 {
				client, prefix = h1, "http://"+addr
			}
			all.Go(func() {
				for time.Now().Before(end) {
					n := fmt.Sprint(asked.Add(1))
					path := paths[rand.IntN(len(paths))]
					if rand.IntN(2) == 0 {
						path = "limited/" + path
					}
					status, err := askObserved(client, prefix+"/"+path, n, rand.IntN(8) == 0)
					switch {
					case err != nil:
						t.Errorf("%s: %v", path, err)
					case status == 0: // the client has disconnected
					default:
						answered.Add(1)
						var told []int
						eventually(func() bool { told = o.remove(n); return len(told) > 0 })
						if len(told) != 1 || told[0] != status {
							t.Errorf("%s: observers got %v, the client got %d", path, told, status)
						}
						if status >= 500 && status != 503 && !strings.HasSuffix(path, "panic") || status < 500 && strings.HasSuffix(path, "panic") {
							t.Errorf("%s: got %d", path, status)
						}
					}
				}
			})
		}
		all.Wait()
		Soon(t, "all actions have returned", func() bool { return app.Stats().Actions.InFlight == 0 })
		o.mu.Lock()
		defer o.mu.Unlock()
		for n, told := range o.all {
			if len(told) > 1 {
				t.Errorf("observers got %v for request %s", told, n)
			}
		}
		t.Logf("%d requests, %d answered", asked.Load(), answered.Load())
	})
}

// askObserved checks a response and returns its status, or 0 if the client disconnects first.
func askObserved(client *http.Client, url, n string, leaves bool) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if leaves {
		time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
	}
	method, body := "GET", io.Reader(nil)
	if rand.IntN(2) == 0 {
		method, body = "POST", strings.NewReader(strings.Repeat("b", rand.IntN(40_000)))
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-N", n)
	resp, err := client.Do(req)
	var got []byte
	if err == nil {
		got, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	switch {
	case err != nil && leaves:
		return 0, nil
	case err != nil:
		return 0, err
	case resp.Header.Get("X-N") != n:
		return 0, fmt.Errorf("request %s: the feature says %q", n, resp.Header.Get("X-N"))
	case resp.StatusCode == 200 && !strings.HasSuffix(string(got), n):
		return 0, fmt.Errorf("request %s: the answer ends with %q", n, got[max(len(got)-20, 0):])
	}
	return resp.StatusCode, nil
}
