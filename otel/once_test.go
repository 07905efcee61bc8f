package otel_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/otel"
)

// Each request has one span and one line of the access log, over HTTP/1.1 and HTTP/2. They agree and refer to each other,
// regardless of the origin of the answer.
func TestOneSpanOneLine(t *testing.T) {
	lines := make(chan map[string]any, 100)
	quiet := slog.New(slog.DiscardHandler)
	access := slog.New(otel.LogHandler(slog.NewJSONHandler(lineWriter(lines), nil)))
	dunlintest.OnEngines(t, dunlin.Config{Logger: quiet, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{MaxBody: 100}}, func(t *testing.T, app *dunlin.App) {
		provider, spans := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}), middleware.AccessLog(middleware.AccessLogConfig{Logger: access}))
		routes(app)
		over := make(chan struct{})
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-over; return dunlin.Text("late") }).Timeout(20 * time.Millisecond)
		app.Post("/body", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		})
		app.Get("/cut", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				panic("it")
			})
		})
		std := app.Group("/std")
		std.UseStd(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Std", "1")
				next.ServeHTTP(w, r)
			})
		})
		std.Get("/{x}", func(*dunlin.Request) dunlin.Response { return dunlin.Text("std") })
		app.Mount("/mounted", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		addr := dunlintest.Serve(t, app)
		defer close(over)
		two := &http.Transport{Protocols: new(http.Protocols)}
		two.Protocols.SetUnencryptedHTTP2(true)
		for version, client := range map[string]*http.Transport{"1.1": {}, "2": two} {
			defer client.CloseIdleConnections()
			for _, c := range []struct {
				method, path, body, route, status, failure string
			}{
				{"GET", "/users/7", "", "/users/{id}", "200", ""},
				{"HEAD", "/users/7", "", "/users/{id}", "200", ""},
				{"GET", "/nowhere/7", "", "", "404", ""},
				{"DELETE", "/users/7", "", "", "405", ""},
				{"POST", "/body", strings.Repeat("x", 1000), "/body", "413", ""},
				{"GET", "/bad", "", "/bad", "500", "500"},
				{"GET", "/panic", "", "/panic", "500", "500"},
				{"GET", "/late", "", "/late", "503", "503"},
				{"GET", "/abort", "", "/abort", "", "dropped"},
				{"GET", "/cut", "", "/cut", "", "dropped"},
				{"GET", "/std/7", "", "/std/{x}", "200", ""},
				{"GET", "/mounted/7", "", "/mounted", "418", ""},
			} {
				req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Traceparent", parent)
				if resp, err := client.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // some bodies are cut off
					_ = resp.Body.Close()
				}
				s, line := spans.next(t), <-lines
				got, status := attributesOf(s), ""
				if n, ok := line["status"].(float64); ok {
					status = strconv.Itoa(int(n))
				}
				if got["http.route"] != c.route || got["error.type"] != c.failure || s.Status().Code == codes.Error != (c.failure != "") || got["network.protocol.version"] != version ||
					c.status != "" && got["http.response.status_code"] != c.status {
					t.Errorf("%s %s by HTTP/%s: the span %q, %v: got %v", c.method, c.path, version, s.Name(), s.Status(), got)
				}
				if line["trace_id"] != traceID || line["span_id"] != s.SpanContext().SpanID().String() || line["route"] != c.route || line["path"] != c.path || status != c.status {
					t.Errorf("%s %s by HTTP/%s: got log line %v", c.method, c.path, version, line)
				}
				if len(spans) > 0 || len(lines) > 0 {
					t.Errorf("%s %s by HTTP/%s: got got %d more spans and %d more log lines", c.method, c.path, version, len(spans), len(lines))
				}
			}
		}
		end := time.After(30 * time.Second)
		for app.Stats().Actions.InFlight > 0 {
			select {
			case <-end:
				t.Fatal(fmt.Sprint(app.Stats().Actions.InFlight, " requests are in flight"))
			case <-time.After(time.Millisecond):
			}
		}
	})
}
