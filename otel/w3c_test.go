package otel_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/otel"
)

// Trace context is parsed according to W3C Trace Context, sections 3.2 and 3.3. Either the trace is continued with its state,
// in the original order, or a new trace begins without state.
func TestTraceContextInHeaders(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, app *dunlin.App) {
		provider, _ := newProvider()
		app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			s := trace.SpanContextFromContext(r.Context())
			return dunlin.Text(fmt.Sprintf("%v %s", s.TraceID().String() == traceID, s.TraceState()))
		})
		addr := dunlintest.Serve(t, app)
		members := func(n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf("k%d=1", i))
			}
			return strings.Join(all, ",")
		}
		const good = "traceparent: " + parent
		value := " !\"#$%&'()*+" + "-./0123456789:;<" + ">?@AZ[\\]^_`az{|}~"
		for _, c := range []struct {
			name, lines, want string // "continued state"
		}{
			{"none", "", "false "},
			{"a parent", good, "true "},
			{"in other letters", "TrAcEpArEnT: " + parent, "true "},
			{"other name", "trace-parent: " + parent, "false "},
			{"space around it", "traceparent: \t " + parent + " \t", "true "},
			{"two", good + "\n" + good, "false "},
			{"two in one line", good + "," + parent, "false "},
			{"empty", "traceparent:", "false "},
			{"more of version 00", good + "-more", "false "},
			{"a dot after version 00", good + ".", "false "},
			{"a later version", "traceparent: cc" + parent[2:], "true "},
			{"additional data of a later version", "traceparent: cc" + parent[2:] + "-what-the-future-will-be-like", "true "},
			{"a dot after a later version", "traceparent: cc" + parent[2:] + ".what", "false "},
			{"version ff", "traceparent: ff" + parent[2:], "false "},
			{"version .0", "traceparent: .0" + parent[2:], "false "},
			{"version 0.", "traceparent: 0." + parent[2:], "false "},
			{"version 000", "traceparent: 0" + parent, "false "},
			{"version 0", good[:13] + parent[1:], "false "},
			{"a dot in the trace", "traceparent: 00-." + traceID[1:] + "-" + spanID + "-01", "false "},
			{"a long trace", "traceparent: 00-" + traceID + "0-" + spanID + "-01", "false "},
			{"a short trace", "traceparent: 00-" + traceID[1:] + "-" + spanID + "-01", "false "},
			{"a dot in the parent", "traceparent: 00-" + traceID + "-." + spanID[1:] + "-01", "false "},
			{"a long parent", "traceparent: 00-" + traceID + "-" + spanID + "0-01", "false "},
			{"a short parent", "traceparent: 00-" + traceID + "-" + spanID[1:] + "-01", "false "},
			{"a dot in the flags", "traceparent: 00-" + traceID + "-" + spanID + "-.1", "false "},
			{"long flags", "traceparent: 00-" + traceID + "-" + spanID + "-001", "false "},
			{"short flags", "traceparent: 00-" + traceID + "-" + spanID + "-1", "false "},
			{"a random trace", "traceparent: 00-" + traceID + "-" + spanID + "-03", "true "},
			{"capitals", "traceparent: 00-" + strings.ToUpper(traceID) + "-" + spanID + "-01", "false "},
			{"an enormous parent", "traceparent: cc" + parent[2:] + "-" + strings.Repeat("x", 4000), "true "},
			{"tracestate only", "tracestate: foo=1", "false "},
			{"a state of a bad parent", "traceparent: 00-x\ntracestate: foo=1", "false "},
			{"a state", good + "\ntracestate: foo=1,bar=2", "true foo=1,bar=2"},
			{"tracestate with another name", good + "\ntrace-state: foo=1", "true "},
			{"an empty state", good + "\ntracestate:", "true "},
			{"an empty line first", good + "\ntracestate:\ntracestate: foo=1", "true foo=1"},
			{"an empty line last", good + "\ntracestate: foo=1\ntracestate:", "true foo=1"},
			{"an empty line between", good + "\ntracestate: foo=1\ntracestate:\ntracestate: bar=2", "true foo=1,bar=2"},
			{"empty members", good + "\ntracestate: foo=1,,, ,bar=2,", "true foo=1,bar=2"},
			{"three lines", good + "\ntracestate: foo=1,bar=2\ntracestate: rojo=1,congo=2\ntracestate: baz=3", "true foo=1,bar=2,rojo=1,congo=2,baz=3"},
			{"space in a state", good + "\ntracestate: \t foo=1 \t , \t bar=2, \t baz=3 \t", "true foo=1,bar=2,baz=3"},
			{"all of a key", good + "\ntracestate: a0123456789_-*/=1,tenant@vendor=2", "true a0123456789_-*/=1,tenant@vendor=2"},
			{"all of a value", good + "\ntracestate: foo=" + value, "true foo=" + value},
			{"a long key", good + "\ntracestate: " + strings.Repeat("z", 256) + "=1", "true " + strings.Repeat("z", 256) + "=1"},
			{"too long a key", good + "\ntracestate: " + strings.Repeat("z", 257) + "=1", "true "},
			{"too long a value", good + "\ntracestate: foo=" + strings.Repeat("t", 257), "true "},
			{"a key with a space", good + "\ntracestate: foo =1", "true "},
			{"a key in capitals", good + "\ntracestate: FOO=1", "true "},
			{"a key with a dot", good + "\ntracestate: foo.bar=1", "true "},
			{"no key", good + "\ntracestate: =1", "true "},
			{"no value sign", good + "\ntracestate: foo", "true "},
			{"two equals", good + "\ntracestate: foo=bar=baz", "true "},
			{"an empty tenant", good + "\ntracestate: @foo=1,bar=2", "true "},
			{"no value", good + "\ntracestate: foo=,bar=3", "true "},
			{"32 members", good + "\ntracestate: " + members(32), "true " + members(32)},
			{"33 members", good + "\ntracestate: " + members(33), "true "},
			{"more lines", good + "\ntracestate: " + members(20) + "\ntracestate: a=1", "true " + members(20) + ",a=1"},
		} {
			lines := ""
			if c.lines != "" {
				lines = strings.ReplaceAll(c.lines, "\n", "\r\n") + "\r\n"
			}
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n"+lines+"Connection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(c.name, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = conn.Close()
			if err != nil || string(body) != c.want {
				t.Errorf("%s: got %q, want %q, %v", c.name, body, c.want, err)
			}
		}
	})
}
