package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/stats"
)

// statsOf returns the statistics of the route with the pattern.
func statsOf(t *testing.T, app *dunlin.App, pattern string) stats.Route {
	t.Helper()
	for _, s := range app.Stats().Routes {
		if s.Pattern == pattern {
			return s
		}
	}
	t.Fatalf("no route %s", pattern)
	return stats.Route{}
}

// startCounted is start, and returns the app too.
func startCounted(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (app *dunlin.App, addr string) {
	t.Helper()
	addr, _ = Start(t, config, func(a *dunlin.App) {
		app = a
		register(a)
	})
	return app, addr
}

// statusOf sends a request on a connection of its own and returns the status, 0 when
// there is no answer.
func statusOf(t *testing.T, method, url string) int {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // a truncated response is intended
	return resp.StatusCode
}

func TestRouteStatsCountOutcomes(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startCounted(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			api := app.Group("/api").Version("v2")
			api.Get("/ok", Text("ok")).Name("fine")
			app.Host("a.example").Post("/host", Text("ok"))
			app.Get("/moved", Constant(dunlin.Empty().Status(303)))
			app.Get("/client", func(*dunlin.Request) dunlin.Response { return dunlin.NotFound() })
			app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("here") })
			app.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
			app.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					_, err := io.WriteString(w, strings.Repeat("x", 100_000))
					return err
				})
			})
			app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) }))
			app.Get("/quick", Text("quick")).Timeout(time.Minute)
			app.Get("/unused", Text("unused"))
		})
		base := "http://" + addr
		for range 3 {
			for _, path := range []string{"/moved", "/client", "/panic", "/abort", "/stream", "/quick", "/std", "/nowhere"} {
				statusOf(t, "GET", base+path)
			}
			statusOf(t, "DELETE", base+"/moved") // 405
		}
		for _, c := range []struct {
			pattern string
			want    stats.StatusCounts
			panics  uint64
		}{
			{"/api/ok", stats.StatusCounts{}, 0},
			{"/moved", stats.StatusCounts{Redirection: 3}, 0},
			{"/client", stats.StatusCounts{ClientError: 3}, 0},
			{"/panic", stats.StatusCounts{ServerError: 3}, 3},
			{"/abort", stats.StatusCounts{Dropped: 3}, 0},
			{"/stream", stats.StatusCounts{Success: 3}, 0},
			{"/quick", stats.StatusCounts{Success: 3}, 0},
			{"/std", stats.StatusCounts{ServerError: 3}, 0},
			{"/unused", stats.StatusCounts{}, 0},
		} {
			var got stats.Route
			Soon(t, c.pattern+" is counted", func() bool {
				got = statsOf(t, app, c.pattern)
				return got.Status == c.want && got.InFlight == 0
			})
			answered := c.want != stats.StatusCounts{}
			if answered != (got.Requests == 3) || got.Panics != c.panics || got.Timeouts != 0 {
				t.Errorf("got %+v", got)
			}
			if l := got.Latency; answered != (l.P50 > 0 && l.P50 <= l.P90 && l.P90 <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max) {
				t.Errorf("%s: got %+v", c.pattern, l)
			}
		}
		s := app.Stats()
		if s.Unmatched.Requests != 6 || s.Unmatched.Status.ClientError != 6 || s.Unmatched.Pattern != "" {
			t.Errorf("unmatched: got %+v", s.Unmatched)
		}
		if r := s.Routes[0]; r.Methods != "GET" || r.Version != "v2" || r.Name != "fine" {
			t.Errorf("got %+v", r)
		}
		if r := s.Routes[1]; r.Methods != "POST" || r.Host != "a.example" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestRouteStatsOfBlockingActions(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		entered, leave := make(chan struct{}), make(chan struct{})
		wait := func(*dunlin.Request) dunlin.Response {
			entered <- struct{}{}
			<-leave
			return dunlin.NoContent()
		}
		app, addr := startCounted(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/wait", wait)
			app.Get("/limited", wait).Timeout(time.Minute)
			app.Get("/late", wait).Timeout(time.Millisecond)
		})
		answers := make(chan int, 10)
		get := func(path string) { answers <- statusOf(t, "GET", "http://"+addr+path) }
		go get("/wait")
		Await(t, "the action", entered)
		go get("/wait")
		Await(t, "the action", entered)
		go get("/limited")
		Await(t, "the action", entered)
		Soon(t, "requests are in flight", func() bool {
			return statsOf(t, app, "/wait").InFlight == 2 && statsOf(t, app, "/limited").InFlight == 1 && app.Stats().Actions.InFlight == 3
		})
		if s := statsOf(t, app, "/wait"); s.Requests != 0 || s.Latency.Max != 0 {
			t.Errorf("counted before it has ended: %+v", s)
		}
		for range 3 {
			leave <- struct{}{}
			if status := <-answers; status != 204 {
				t.Errorf("answered %d", status)
			}
		}
		s := statsOf(t, app, "/wait")
		if s.Requests != 2 || s.Status.Success != 2 || s.InFlight != 0 || (engine == dunlin.EngineLoop) != (s.Takeovers == 2) {
			t.Errorf("got %+v", s)
		}

		go get("/late")
		Await(t, "the action", entered)
		if status := <-answers; status != 503 {
			t.Errorf("answered %d", status)
		}
		want := func() bool {
			s := statsOf(t, app, "/late")
			return s.Requests == 1 && s.Status.ServerError == 1 && s.Timeouts == 1 && s.InFlight == 0 && s.Latency.Max >= time.Millisecond
		}
		if !want() {
			t.Errorf("late: got %+v", statsOf(t, app, "/late"))
		}
		leave <- struct{}{}
		if !want() {
			t.Errorf("an action that ends late was counted again: %+v", statsOf(t, app, "/late"))
		}
	})
}

func TestRouteStatsAfterGoexit(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startCounted(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			exit := func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() }
			app.Get("/exit", exit)
			app.Get("/limited", exit).Timeout(time.Minute)
		})
		for _, path := range []string{"/exit", "/limited"} {
			statusOf(t, "GET", "http://"+addr+path)
			Soon(t, path+" is counted", func() bool {
				s := statsOf(t, app, path)
				return s.Requests == 1 && s.Status.ServerError+s.Status.Dropped == 1 && s.InFlight == 0
			})
		}
	})
}

func TestRouteStatsOfPipelinedRequests(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startCounted(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/a", Text("a"))
			app.Get("/b", Constant(dunlin.Empty().Status(304)))
		})
		conn := Dial(t, addr)
		pair := "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
		last := "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		if _, err := io.WriteString(conn, strings.Repeat(pair, 50)+last); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		if a, b := statsOf(t, app, "/a"), statsOf(t, app, "/b"); a.Status.Success != 101 || b.Status.Redirection != 50 || a.Requests+b.Requests != 151 {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
}

func TestRouteStatsPolicy(t *testing.T) {
	for _, c := range []struct {
		policy       stats.RoutePolicy
		bare, served uint64 // requests counted of each kind
	}{{stats.Auto, 0, 1}, {stats.On, 1, 2}, {stats.Off, 0, 0}} {
		OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
			app, addr := startCounted(t, dunlin.Config{Engine: engine, RouteStats: c.policy}, func(app *dunlin.App) {
				app.Get("/", Text("ok"))
				Do(app, "GET", "/")
				if n := statsOf(t, app, "/").Requests; n != c.bare {
					t.Errorf("policy %d: got %d requests before the app serves", c.policy, n)
				}
			})
			statusOf(t, "GET", "http://"+addr+"/")
			if s := statsOf(t, app, "/"); s.Requests != c.served || s.InFlight != 0 {
				t.Errorf("policy %d: got %+v", c.policy, s)
			}
		})
	}
	if text := PanicText(func() { dunlin.New(dunlin.Config{RouteStats: 3}) }); !strings.Contains(text, "Config.RouteStats") {
		t.Errorf("New: got %q", text)
	}
}

func TestLatencyBetweenTwoSnapshots(t *testing.T) {
	app, _ := NewApp(dunlin.Config{RouteStats: stats.On})
	app.Get("/", Text("ok"))
	for range 5 {
		Do(app, "GET", "/")
	}
	before := statsOf(t, app, "/").Latency
	for range 3 {
		Do(app, "GET", "/")
	}
	var requests uint64
	for _, n := range statsOf(t, app, "/").Latency.Since(before).Buckets {
		requests = n
	}
	if requests != 3 {
		t.Errorf("%d requests between the snapshots, want 3", requests)
	}
}

func TestStatsWhileServing(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startCounted(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/{n}", Text("ok"))
		})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					statusOf(t, "GET", "http://"+addr+"/1")
				}
			})
		}
		for range 200 {
			if s := app.Stats(); s.Connections.Open < 0 || s.Actions.InFlight < 0 {
				t.Errorf("got %v", s)
			}
		}
		app.Get("/added/while/serving", Text("ok"))
		wg.Wait()
		s := app.Stats()
		if s.Routes[0].Requests != 200 || s.Connections.Accepted != 200 || len(s.Routes) != 2 {
			t.Errorf("got %v", s)
		}
		Soon(t, "the connections are closed", func() bool { return app.Stats().Connections.Open == 0 })
	})
}

// A member name without its unit, or one that changes with a field's name, would break readers of the JSON.
func TestStatsAsJSON(t *testing.T) {
	var check func(path string, typ reflect.Type)
	check = func(path string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() || f.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name[0] >= 'A' && name[0] <= 'Z' {
				t.Errorf("%s.%s has no name in JSON, or one in another style", path, f.Name)
			}
			if duration := f.Type == reflect.TypeFor[time.Duration](); duration != strings.HasSuffix(name, "Ns") {
				t.Errorf("%s.%s is called %s in JSON: names of times end in Ns, others do not", path, f.Name, name)
			}
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				check(path+"."+f.Name, inner)
			}
		}
	}
	check("Stats", reflect.TypeFor[stats.Snapshot]())

	app, _ := NewApp(dunlin.Config{RouteStats: stats.On})
	app.Get("/", Text("ok"))
	Do(app, "GET", "/")
	var tree struct {
		Routes []struct {
			Status  map[string]uint64
			Latency map[string]int64
		}
	}
	if err := json.Unmarshal([]byte(app.Stats().String()), &tree); err != nil || len(tree.Routes) != 1 {
		t.Fatalf("got %v in %v", err, app.Stats())
	}
	if r := tree.Routes[0]; r.Status["2xx"] != 1 || r.Latency["p999Ns"] <= 0 {
		t.Errorf("got %+v", r)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	app, _ := NewApp(dunlin.Config{RouteStats: stats.On})
	app.Get("/", Text("ok"))
	req, err := http.NewRequest("GET", "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := NewDiscard()
	if allocs := testing.AllocsPerRun(1000, func() { app.ServeHTTP(w, req) }); allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}

func BenchmarkStats(b *testing.B) {
	app := dunlin.New(dunlin.Config{RouteStats: stats.On})
	for i := range 200 {
		app.Get(fmt.Sprintf("/%d", i), Text("ok"))
		for range 5 {
			Do(app, "GET", fmt.Sprintf("/%d", i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		app.Stats()
	}
}

func BenchmarkCounting(b *testing.B) {
	for _, policy := range []stats.RoutePolicy{stats.Off, stats.On} {
		b.Run(fmt.Sprint(policy), func(b *testing.B) {
			app := dunlin.New(dunlin.Config{RouteStats: policy})
			app.Get("/", Text("ok"))
			req, err := http.NewRequest("GET", "/", nil)
			if err != nil {
				b.Fatal(err)
			}
			w := NewDiscard()
			for b.Loop() {
				app.ServeHTTP(w, req)
			}
		})
	}
}
