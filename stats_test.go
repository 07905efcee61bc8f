package dunlin_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/stats"
)

func TestStats(t *testing.T) {
	t.Setenv("GOGC", "")
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineAuto} {
		t.Run(engine.String(), func(t *testing.T) {
			ready := make(chan dunlin.Engine, 1)
			app := dunlin.New(dunlin.Config{
				Engine: engine, Limits: dunlin.Limits{Memory: 64 << 20, MaxConcurrent: 7},
				Ready: func(_ net.Addr, e dunlin.Engine) { ready <- e },
			})
			app.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) })
			if s := app.Stats(); s.Memory.Limit != 0 || s.Connections.Open != 0 {
				t.Errorf("before the app serves: got %v", s)
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- app.Serve(ln) }()
			by := <-ready

			var s stats.Snapshot
			text := bodyOf(t, "http://"+ln.Addr().String()+"/stats")
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatalf("got error %v for %s", err, text)
			}
			m := s.Memory
			if m.Limit != 64<<20 || m.LimitSource != "config" || m.Budget <= 0 || m.Budget >= m.Limit/4 || m.Fair > m.Budget || m.HeapGoal >= m.Limit {
				t.Errorf("got memory statistics %+v", m)
			}
			if s.Runtime.Goroutines == 0 {
				t.Errorf("got runtime statistics %+v", s.Runtime)
			}
			if by == dunlin.EngineLoop && (s.Connections.Open != 1 || s.Connections.Accepted != 1 || len(s.Connections.PerLoop) == 0) {
				t.Errorf("got connection statistics %+v", s.Connections)
			}
			if err := app.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// The documentation describes each reason of stats.Snapshot.Shed.
func TestShedStatsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/DEPLOY.md")
	if err != nil {
		t.Fatal(err)
	}
	shed := dunlin.New(dunlin.Config{}).Stats().Shed
	if len(shed) == 0 {
		t.Error("got no counts")
	}
	for name := range shed {
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/DEPLOY.md does not describe «%s» of stats.Snapshot.Shed", name)
		}
	}
}

func TestPublish(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	name := fmt.Sprintf("dunlin-test-%p", app) // it remains published if the test is repeated
	stats.Publish(name, app.Stats)
	var s stats.Snapshot
	if err := json.Unmarshal([]byte(expvar.Get(name).String()), &s); err != nil || s.Runtime.Goroutines == 0 {
		t.Errorf("got %+v, error %v", s, err)
	}
	if got := app.Stats().String(); !json.Valid([]byte(got)) {
		t.Errorf("String is no JSON: got %s", got)
	}
}

// bodyOf returns the body of a URL, over a connection of its own.
func bodyOf(t *testing.T, url string) []byte {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(suite.Body(t, resp))
}
