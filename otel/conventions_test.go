package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/otel"
	"github.com/dunlinhttp/dunlin/stats"
)

// Responses of the app itself have a span where middleware runs. The span has the route, if there is one, and is an error for a
// status of 500 or more.
func TestAnswersOfTheApp(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		provider, spans := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		over := make(chan struct{})
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-over; return dunlin.Text("late") }).Timeout(20 * time.Millisecond)
		app.Handle("GET,POST", "/items/{id:int}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("item") })
		addr := serve()
		defer close(over)
		for _, c := range []struct{ method, path, name, route, status, source, failure string }{
			{"GET", "/late", "GET /late", "/late", "503", "timeout", "503"},
			{"GET", "/items/x", "GET", "", "404", "app", ""},
			{"DELETE", "/items/7", "DELETE", "", "405", "app", ""},
			{"BREW", "/items/7", "HTTP", "", "405", "app", ""},
			{"OPTIONS", "/items/7", "OPTIONS", "", "204", "app", ""},
			{"HEAD", "/items/7", "HEAD /items/{id:int}", "/items/{id:int}", "200", "", ""},
		} {
			ask(t, c.method, "http://"+addr+c.path)
			s := spans.next(t)
			got := attributesOf(s)
			if s.Name() != c.name || got["http.route"] != c.route || got["http.response.status_code"] != c.status || got["dunlin.answer.source"] != c.source ||
				got["error.type"] != c.failure || s.Status().Code == codes.Error != (c.failure != "") {
				t.Errorf("%s %s: the span %q ends as %v: %v", c.method, c.path, s.Name(), s.Status(), got)
			}
		}
	})
}

// Exporters refuse an entire batch that contains invalid UTF-8. Routes stay distinct nevertheless.
func TestRoutesAreUTF8(t *testing.T) {
	provider, spans := newProvider()
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler), RouteStats: stats.On})
	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
	for _, route := range []string{"/a\xff", "/a\xfe", "/\u00e9\xe2\x82/x"} {
		app.Get(route, func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	}
	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/a%ff", nil))
	if s := spans.next(t); s.Name() != "GET /a%FF" || attributesOf(s)["http.route"] != "/a%FF" || !utf8.ValidString(attributesOf(s)["url.path"]) {
		t.Errorf("span %q: got %v", s.Name(), attributesOf(s))
	}
	produced, err := otel.NewProducer(app).Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range produced[0].Metrics {
		if d, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "http.server.active_requests" {
			counted := map[string]int64{}
			for _, point := range d.DataPoints {
				route, _ := point.Attributes.Value("http.route")
				if _, twice := counted[route.AsString()]; twice || !utf8.ValidString(route.AsString()) {
					t.Errorf("the route %q, twice: got %v", route.AsString(), twice)
				}
				counted[route.AsString()] = point.Value
			}
			for _, route := range []string{"/a%FF", "/a%FE", "/\u00e9%E2%82/x"} {
				if _, there := counted[route]; !there {
					t.Errorf("the route %q is not there: got %v", route, counted)
				}
			}
		}
	}
}

// Baggage is propagated in all states of the trace, unless the context is public. A trace that was not sampled is not
// continued.
func TestBaggage(t *testing.T) {
	provider, _ := newProvider()
	none := 0.0
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	unsampled := parent[:len(parent)-1] + "0"
	for name, c := range map[string]struct {
		config  otel.Config
		parent  string
		carried bool // whether the trace is passed on
	}{
		"all":                     {otel.Config{}, "", true},
		"of a trace":              {otel.Config{}, parent, true},
		"of one that is not":      {otel.Config{}, unsampled, true},
		"none":                    {otel.Config{Ratio: &none}, "", false},
		"none, of a trace":        {otel.Config{Ratio: &none}, parent, true},
		"none, of one that isn't": {otel.Config{Ratio: &none}, unsampled, true},
		"public":                  {otel.Config{Public: true}, parent, true},
		"public, none":            {otel.Config{Public: true, Ratio: &none}, parent, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.TracerProvider, c.config.Propagator = provider, both
			heard := make(chan http.Header, 1)
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header }))
			defer other.Close()
			client := &http.Client{Transport: otel.Transport(other.Client().Transport, c.config)}
			app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
			app.Install(otel.Tracing(c.config))
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				req, err := http.NewRequestWithContext(r.Context(), "GET", other.URL, nil)
				if err != nil {
					return dunlin.Error(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					return dunlin.Error(err)
				}
				_ = resp.Body.Close()
				return dunlin.Text(baggage.FromContext(r.Context()).String())
			})
			req := httptest.NewRequest("GET", "/", nil)
			req.Header["Baggage"] = []string{"user=ada", ""} // as lists may contain
			if c.parent != "" {
				req.Header.Set("Traceparent", c.parent)
			}
			w := httptest.NewRecorder()
			app.ServeHTTP(w, req)
			want := "user=ada"
			if c.config.Public {
				want = ""
			}
			if got := <-heard; w.Body.String() != want || got.Get("Baggage") != want || got.Get("Traceparent") != "" != c.carried {
				t.Errorf("got baggage %q in the action and %v in its call", w.Body, got)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The span of a call has the server's address and port, and the method.
func TestCalls(t *testing.T) {
	provider, spans := newProvider()
	ctx, span := provider.Tracer("").Start(t.Context(), "test")
	defer span.End()
	for _, c := range []struct{ method, url, name, address, port, known, original string }{
		{"", "http://example.com/a", "GET", "example.com", "80", "GET", ""},
		{"POST", "https://example.com/a", "POST", "example.com", "443", "POST", ""},
		{"GET", "https://[::1]/a", "GET", "::1", "443", "GET", ""},
		{"GET", "https://example.com:8443/a", "GET", "example.com", "8443", "GET", ""},
		{"PROPFIND", "http://example.com/a", "HTTP", "example.com", "80", "_OTHER", "PROPFIND"},
	} {
		transport := otel.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}, nil
		}), otel.Config{TracerProvider: provider})
		req, err := http.NewRequestWithContext(ctx, c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Method = c.method
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		s := spans.next(t)
		if got := attributesOf(s); s.Name() != c.name || got["server.address"] != c.address || got["server.port"] != c.port || got["http.request.method"] != c.known ||
			got["http.request.method_original"] != c.original || got["network.protocol.version"] != "1.1" || got["http.response.status_code"] != "204" {
			t.Errorf("%s %s: the span %q: got %v", c.method, c.url, s.Name(), got)
		}
	}
}

// A call without a response has an error.type, which distinguishes a deadline, a canceled context and a failure.
func TestCallsThatFail(t *testing.T) {
	provider, spans := newProvider()
	ctx, span := provider.Tracer("").Start(t.Context(), "test")
	defer span.End()
	for want, err := range map[string]error{
		"transport": errors.New("no way"),
		"timeout":   &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
		"canceled":  &url.Error{Op: "Get", Err: context.Canceled},
	} {
		failing := otel.Transport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, err }), otel.Config{TracerProvider: provider})
		req, bad := http.NewRequestWithContext(ctx, "GET", "http://example.com", nil)
		if bad != nil {
			t.Fatal(bad)
		}
		if _, got := failing.RoundTrip(req); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
		s := spans.next(t)
		if got := attributesOf(s); s.Status().Code != codes.Error || got["error.type"] != want || got["http.response.status_code"] != "" {
			t.Errorf("a call that failed with %v: %v, %v", err, s.Status(), got)
		}
	}
}

// A call that its caller cancels is not an error. A call that exceeds its deadline is an error.
func TestCancelledCalls(t *testing.T) {
	provider, spans := newProvider()
	asked := make(chan struct{}, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- struct{}{}; <-r.Context().Done() }))
	defer other.Close()
	client := &http.Client{Transport: otel.Transport(other.Client().Transport, otel.Config{TracerProvider: provider})}
	for want, giveUp := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"": context.WithCancel,
		"timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		},
	} {
		within, span := provider.Tracer("").Start(t.Context(), "test")
		ctx, cancel := giveUp(within)
		if want == "" {
			go func() { <-asked; cancel() }()
		}
		req, err := http.NewRequestWithContext(ctx, "GET", other.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Error("got an answer")
		}
		s := spans.next(t)
		if got := attributesOf(s)["error.type"]; got != want || s.Status().Code == codes.Error != (want != "") {
			t.Errorf("got error.type %q, want %q, span status %v", got, want, s.Status())
		}
		cancel()
		span.End()
		_ = spans.next(t)
		select {
		case <-asked:
		default:
		}
	}
}

// The span of each call has the address of the peer, and the number of earlier requests: each redirect is a call of its own.
func TestRedirectedCalls(t *testing.T) {
	provider, spans := newProvider()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next := map[string]string{"/": "/b", "/b": "/c"}[r.URL.Path]; next != "" {
			http.Redirect(w, r, next, http.StatusFound)
		}
	}))
	defer other.Close()
	client := &http.Client{Transport: otel.Transport(other.Client().Transport, otel.Config{TracerProvider: provider})}
	ctx, span := provider.Tracer("").Start(t.Context(), "test")
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, "GET", other.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	host, port, _ := net.SplitHostPort(other.Listener.Addr().String())
	for _, want := range []string{"", "1", "2"} {
		if got := attributesOf(spans.next(t)); got["http.request.resend_count"] != want || got["network.peer.address"] != host || got["network.peer.port"] != port {
			t.Errorf("call %q: got %v", want, got)
		}
	}
}

// Log records of the app about a failed request have the identifiers of its trace, so that the trace can be found.
func TestFailuresInTheLog(t *testing.T) {
	lines := make(chan map[string]any, 100)
	logger := slog.New(otel.LogHandler(slog.NewJSONHandler(lineWriter(lines), &slog.HandlerOptions{Level: slog.LevelDebug})))
	dunlintest.OnEngines(t, dunlin.Config{Logger: logger}, func(t *testing.T, app *dunlin.App) {
		provider, _ := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		routes(app)
		app.Get("/wrong", func(*dunlin.Request) dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 400, Cause: errors.New("the cause")})
		})
		app.Get("/half", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				return errors.New("the cause")
			})
		})
		app.Get("/half/panic", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				panic("it")
			})
		})
		addr := dunlintest.Serve(t, app)
		for path, message := range map[string]string{
			"/bad": "request failed", "/wrong": "request failed", "/panic": "panic in an action", "/half": "stream failed", "/half/panic": "panic after part of the answer was sent",
		} {
			ask(t, "GET", "http://"+addr+path, "Traceparent", parent)
			for line := range lines {
				if line["msg"] != message {
					continue // a span of the server
				}
				if span := fmt.Sprint(line["span_id"]); line["trace_id"] != traceID || len(span) != 16 || span == spanID {
					t.Errorf("%s: got %v", path, line)
				}
				break
			}
		}
	})
}

// A lineWriter sends each line, which is a JSON object.
type lineWriter chan map[string]any

func (w lineWriter) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	w <- line
	return len(p), nil
}

// A span has the HTTP version of its request.
func TestProtocolVersion(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler), H2C: dunlin.H2CPriorKnowledge}, func(t *testing.T, app *dunlin.App) {
		provider, spans := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
		addr := dunlintest.Serve(t, app)
		two := &http.Transport{Protocols: new(http.Protocols)}
		two.Protocols.SetUnencryptedHTTP2(true)
		defer two.CloseIdleConnections()
		one := func(version string) func() error {
			return func() error {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					return err
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, "GET / HTTP/"+version+"\r\nHost: example.com\r\nConnection: close\r\n\r\n"); err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, conn)
				return err
			}
		}
		for version, ask := range map[string]func() error{
			"1.0": one("1.0"), "1.1": one("1.1"),
			"2": func() error {
				resp, err := (&http.Client{Transport: two}).Get("http://" + addr)
				if err != nil {
					return err
				}
				return resp.Body.Close()
			},
		} {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			if got := attributesOf(spans.next(t))["network.protocol.version"]; got != version {
				t.Errorf("a request by HTTP/%s: network.protocol.version is %q", version, got)
			}
		}
		app.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Host: "example.com"})
		if got, said := attributesOf(spans.next(t))["network.protocol.version"]; said {
			t.Errorf("request without a protocol: got %q", got)
		}
	})
}

// Spans have methods other than the usual ones if the service or its environment declares them as known.
func TestKnownMethods(t *testing.T) {
	for name, c := range map[string]struct {
		methods []string
		env     string
		want    map[string]string
	}{
		"as is usual":     {nil, "", map[string]string{"PROPFIND": "HTTP /x", "GET": "GET /x", "get": "HTTP /x"}},
		"the service":     {[]string{"PROPFIND"}, "", map[string]string{"PROPFIND": "PROPFIND /x", "GET": "HTTP /x"}},
		"the environment": {nil, "GET,PROPFIND", map[string]string{"PROPFIND": "PROPFIND /x", "GET": "GET /x", "POST": "HTTP /x"}},
		"both":            {[]string{"GET"}, "PROPFIND", map[string]string{"PROPFIND": "HTTP /x", "GET": "GET /x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", c.env)
			provider, spans := newProvider()
			app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
			app.Install(otel.Tracing(otel.Config{TracerProvider: provider, Methods: c.methods}))
			app.Handle("*", "/x", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
			for method, want := range c.want {
				app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/x", nil))
				if s := spans.next(t); s.Name() != want {
					t.Errorf("%s: got %q", method, s.Name())
				}
			}
		})
	}
}

// After the app has ended, all spans of its requests have ended, too. A flush then exports all of them.
func TestFlushAfterShutdown(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		exported := tracetest.NewInMemoryExporter()
		provider := sdk.NewTracerProvider(sdk.WithBatcher(exported, sdk.WithBatchTimeout(time.Hour)))
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		const n = 50
		var begun, answered sync.WaitGroup
		begun.Add(n)
		open := make(chan struct{})
		app.Get("/", func(*dunlin.Request) dunlin.Response { begun.Done(); <-open; return dunlin.Text("hello") })
		addr := serve()
		for range n {
			answered.Go(func() { ask(t, "GET", "http://"+addr) })
		}
		begun.Wait()
		ended := make(chan error)
		go func() { ended <- app.Shutdown(context.Background()) }()
		close(open)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(exported.GetSpans()); got != n {
			t.Errorf("%d spans of %d requests", got, n)
		}
		answered.Wait()
		_ = provider.Shutdown(t.Context())
	})
}

// The duration of requests has the attributes that the conventions require, and none with text that clients can invent.
func TestDurationsAreByTheConventions(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Handle("GET,POST", "/both/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("ok") })
		app.Get("/fails", func(r *dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("no")) })
		app.Handle("*", "/any", func(r *dunlin.Request) dunlin.Response { return dunlin.NoContent() })
		addr := serve()
		for _, what := range []string{"GET /both/1", "GET /both/2", "POST /both/3", "HEAD /both/4", "GET /fails", "QUERY /any", "ODD /any", "ODDER /any", "GET /nowhere", "ODD /nowhere"} {
			method, path, _ := strings.Cut(what, " ")
			ask(t, method, "http://"+addr+path)
		}
		want := map[string]uint64{
			`{"http.request.method":"GET","http.response.status_code":200,"http.route":"/both/{id}","url.scheme":"http"}`:                2,
			`{"http.request.method":"POST","http.response.status_code":200,"http.route":"/both/{id}","url.scheme":"http"}`:               1,
			`{"http.request.method":"HEAD","http.response.status_code":200,"http.route":"/both/{id}","url.scheme":"http"}`:               1,
			`{"error.type":"500","http.request.method":"GET","http.response.status_code":500,"http.route":"/fails","url.scheme":"http"}`: 1,
			`{"http.request.method":"QUERY","http.response.status_code":204,"http.route":"/any","url.scheme":"http"}`:                    1,
			`{"http.request.method":"_OTHER","http.response.status_code":204,"http.route":"/any","url.scheme":"http"}`:                   2,
			`{"http.request.method":"GET","http.response.status_code":404,"url.scheme":"http"}`:                                          1,
			`{"http.request.method":"_OTHER","http.response.status_code":404,"url.scheme":"http"}`:                                       1,
		}
		producer := otel.NewProducer(app)
		var got map[string]uint64
		for until := time.Now().Add(30 * time.Second); !maps.Equal(got, want); <-time.After(time.Millisecond) { // a request may be counted after its response
			if time.Now().After(until) {
				t.Fatalf("got %v, want %v", got, want)
			}
			produced, err := producer.Produce(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = map[string]uint64{}
			for _, p := range produced[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints {
				attributes, err := json.Marshal(attributesIn(p.Attributes))
				if err != nil {
					t.Fatal(err)
				}
				if _, twice := got[string(attributes)]; twice {
					t.Fatalf("%s: got it twice", attributes)
				}
				if p.Count > 0 {
					got[string(attributes)] = p.Count
				}
			}
		}
	})
}

func attributesIn(set attribute.Set) map[string]any {
	all := map[string]any{}
	for _, a := range set.ToSlice() {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}
