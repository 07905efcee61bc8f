package looph2_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

// A request that no action answers is counted once, with or without observers: one that cannot be served under no route, an
// overdue one under its own.
func TestRefusalIsCountedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprint("watched ", watched), func(t *testing.T) { refusalsCountOnce(t, engine, watched) })
		}
	})
}

func refusalsCountOnce(t *testing.T, engine dunlin.Engine, watched bool) {
	var observed, elsewhere atomic.Uint64
	s := startH2(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{QueueTarget: time.Millisecond}}, func(app *dunlin.App) {
		if watched {
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				if info.Route() == "/compute" {
					observed.Add(1)
				} else {
					elsewhere.Add(1)
				}
			}})
		}
		app.Get("/compute", func(*dunlin.Request) dunlin.Response {
			for end := time.Now().Add(300 * time.Microsecond); time.Now().Before(end); {
			}
			return dunlin.NoContent()
		})
	})
	const others = 3
	for range others {
		req, err := http.NewRequest("GET", "http://"+s.addr+"/compute", nil)
		if err == nil {
			req.Header.Set("Expect", "more")
		}
		if status, body := s.ask(req, err); status != http.StatusExpectationFailed {
			t.Fatalf("an unknown expectation: got %d %s", status, body)
		}
	}
	var done, failed atomic.Uint64
	clients := make([]h2Server, 300) // each has a connection of its own, so that they wait for each other
	for i := range clients {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		clients[i] = h2Server{Client: &http.Client{Transport: transport, Timeout: patience}, addr: s.addr}
	}
	// The clients begin one after the other, and repeat their requests, until one is refused.
	for limit := time.Now().Add(patience); failed.Load() == 0 && time.Now().Before(limit) && !t.Failed(); {
		var all sync.WaitGroup
		var over atomic.Bool
		for i := range clients {
			time.Sleep(500 * time.Microsecond) // increases the number of clients; the pace does not matter
			all.Go(func() {
				for again := true; again && !over.Load(); again = engine == dunlin.EngineLoop { // the other engine has no queue of its own
					switch status, body := clients[i].get("/compute"); status {
					case http.StatusNoContent:
						done.Add(1)
					case http.StatusServiceUnavailable:
						failed.Add(1)
						over.Store(true)
					default:
						t.Errorf("got %d %s", status, body)
						over.Store(true)
					}
					time.Sleep(3 * time.Millisecond) // the pause of a client between requests
				}
			})
		}
		end := time.AfterFunc(time.Second, func() { over.Store(true) })
		all.Wait()
		end.Stop()
		if engine == dunlin.EngineStd {
			break
		}
	}
	if failed.Load() == 0 && engine == dunlin.EngineLoop {
		t.Fatalf("nothing was refused in %v", patience)
	}
	var counts stats.Snapshot
	soon(t, "all are counted", func() bool {
		counts = s.app.Stats()
		return counts.Routes[0].Requests >= done.Load()+failed.Load() && counts.Actions.InFlight == 0
	})
	if got := counts.Routes[0].Status; got.Success != done.Load() || got.ServerError != failed.Load() || counts.Unmatched.Status != (stats.StatusCounts{ClientError: others}) {
		t.Errorf("of %d answers and %d refusals are counted %+v, of %d others %+v", done.Load(), failed.Load(), got, others, counts.Unmatched.Status)
	}
	if watched && (observed.Load() != done.Load()+failed.Load() || elsewhere.Load() != others) {
		t.Errorf("of %d answers %d are observed, of %d others %d", done.Load()+failed.Load(), observed.Load(), others, elsewhere.Load())
	}
}
