package prometheus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/prometheus"
	"github.com/dunlinhttp/dunlin/stats"
)

// The tool of Prometheus reports no problem in a scrape.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("DUNLIN_REQUIRE_ALL is set: %v", err)
		}
		t.Skipf("promtool, of the Debian package prometheus, is not here: %v", err)
	}
	app := newApp()
	app.Get("/metrics", prometheus.Handler(app))
	for _, path := range []string{"/users/1", "/users/none", "/users/bad", "/nowhere", "/any/thing"} {
		ask(app, "GET", path)
	}
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = strings.NewReader(ask(app, "GET", "/metrics").Body.String())
	out, err := check.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || failed.ExitCode() != 0) || len(out) > 0 {
		t.Errorf("promtool check metrics: got %v\n%s", err, out)
	}
}

type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w nowhere) WriteHeader(int)             {}

// A million invented paths and methods create no series.
func TestMillionPaths(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	app := newApp()
	ask(app, "GET", "/users/1")
	before := len(gather(t, app))
	req, w := httptest.NewRequest("GET", "/", nil), nowhere{http.Header{}}
	for i := range n {
		req.Method = "GET"
		switch i % 4 {
		case 0:
			req.URL.Path = fmt.Sprint("/", i)
		case 1:
			req.URL.Path = fmt.Sprint("/users/", i)
		case 2:
			req.URL.Path = fmt.Sprint("/any/", i)
		default:
			req.Method, req.URL.Path = fmt.Sprint("M", i), "/any/x"
		}
		app.ServeHTTP(w, req)
	}
	if after := len(gather(t, app)); after != before {
		t.Errorf("got %d series before and %d after", before, after)
	}
}

// BenchmarkCounting measures the cost of counting a request, as the difference between the two cases.
func BenchmarkCounting(b *testing.B) {
	for name, policy := range map[string]stats.RoutePolicy{"on": stats.On, "off": stats.Off} {
		b.Run(name, func(b *testing.B) {
			app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler), RouteStats: policy})
			app.Get("/users/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
			req, w := httptest.NewRequest("GET", "/users/7", nil), nowhere{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				app.ServeHTTP(w, req)
			}
		})
	}
}
