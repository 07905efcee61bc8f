// Package otel gives an app's requests to OpenTelemetry: traces and metrics by the semantic conventions for HTTP, trace context
// (W3C) in and out, trace identifiers in log records. It is a module of its own.
//
//	app.Use(otel.Trace(otel.Config{TracerProvider: provider}))
//	client := &http.Client{Transport: otel.Transport(nil, otel.Config{TracerProvider: provider})}
//	logger := slog.New(otel.LogHandler(slog.NewJSONHandler(os.Stdout, nil)))
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(otel.NewProducer(app)))
//
// Spans and series are by registered route, never by path: clients cannot make new ones. Metrics are what the app counts
// anyway: a request pays nothing for them.
package otel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// scope is the name of the instrumentation.
const scope = "github.com/dunlinhttp/dunlin/otel"

// inside is what package dunlin has for this one, see its type of that name: nil where it is of another release, that has no such thing.
var inside, _ = exchange.Inside.(interface {
	Version(r *dunlin.Request) string
	Ended(s *dunlin.RouteStats) []tally.Ended
})

// Config has the settings of Trace and Transport. The zero value of a field stands for its default.
type Config struct {
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider

	// Propagator reads and writes trace context. Default: propagation.TraceContext, which is W3C's.
	Propagator propagation.TextMapPropagator

	// Ratio is the part of requests without a sampled trace context that are traced, from 0 to 1. The others do not get as far as the
	// TracerProvider, whose sampler decides about those that do: they pay nothing but a look at a header and a random
	// number. Default: nil, all.
	Ratio *float64

	// Public is for a service on the Internet, to which anybody may send trace context. The span of a request links to the trace that
	// the request names, and is the root of a new one; the sender does not decide about sampling. Nothing of the sender's context, such as
	// baggage, is passed on to calls of the action. Default: trace context is trusted.
	Public bool

	// Methods are those that are said as they are; others are _OTHER, since clients could make any number of them. Default: those
	// that OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS has, separated by commas, else those of RFC 9110, PATCH and QUERY.
	Methods []string
}

func (c *Config) setDefaults() {
	if c.TracerProvider == nil {
		c.TracerProvider = api.GetTracerProvider()
	}
	if c.Propagator == nil {
		c.Propagator = propagation.TraceContext{}
	}
	if c.Methods == nil {
		c.Methods = strings.FieldsFunc(os.Getenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(c.Methods) == 0 {
		c.Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY"}
	}
	if c.Ratio != nil && !(*c.Ratio >= 0 && *c.Ratio <= 1) {
		panic("otel: Config.Ratio is " + strconv.FormatFloat(*c.Ratio, 'g', -1, 64) + ": it must be from 0 to 1")
	}
}

// Trace returns middleware that makes a span for each request that is sampled: a part of the trace that the
// request's trace context names, or the root of a new one. Name and attributes follow the semantic
// conventions for HTTP servers. The span ends with the answer as the client gets it: that of a stream with
// its last piece, that of a late action with the 503. [dunlin.Request.Context] has it for what the action
// calls.
//
// If the trace of a request is not sampled, its trace context is passed on, so that what the action calls is
// not sampled either. A request that begins a trace which Ratio leaves out has no trace context, but what
// else the Propagator reads (baggage) is passed on, unless Config.Public is set. Answers that are given before middleware runs, in an
// overload for example, have no span.
//
// Put Trace first. It panics when a setting is not valid.
func Trace(c Config) dunlin.Middleware {
	c.setDefaults()
	tracer := c.TracerProvider.Tracer(scope)
	var fields []string
	for _, name := range c.Propagator.Fields() {
		fields = append(fields, http.CanonicalHeaderKey(name)) // which is found quicker
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			carried := false
			for _, name := range fields {
				carried = carried || r.Header(name) != ""
			}
			var ctx context.Context
			var remote trace.SpanContext
			if carried {
				ctx = c.Propagator.Extract(r.Context(), carrier{r})
				if remote = trace.SpanContextFromContext(ctx); c.Public {
					ctx, carried = nil, false // remote is linked to, and that is all
				}
			}
			decided := remote.IsValid() && !c.Public
			if decided && !remote.IsSampled() {
				r.SetContext(ctx)
				return next(r)
			}
			if !decided && c.Ratio != nil && rand.Float64() >= *c.Ratio {
				if carried { // baggage, but no trace that is not this one's
					r.SetContext(trace.ContextWithRemoteSpanContext(ctx, trace.SpanContext{}))
				}
				return next(r)
			}
			return c.traced(r, ctx, remote, tracer, next)
		}
	}
}

// traced answers a request within a span. ctx has the remote context, nil if there is none.
func (c *Config) traced(r *dunlin.Request, ctx context.Context, remote trace.SpanContext, tracer trace.Tracer, next dunlin.Action) dunlin.Response {
	if ctx == nil {
		ctx = r.Context()
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(c.attributes(r)...)}
	if c.Public && remote.IsValid() {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: remote}))
	}
	method, _ := c.known(r.Method())
	name := method
	if method == other {
		name = "HTTP"
	}
	if route := r.Route(); route != "" {
		name += " " + inUTF8(route)
	}
	ctx, span := tracer.Start(ctx, name, options...)
	r.SetContext(ctx)
	if !span.IsRecording() {
		return next(r) // the provider's sampler has decided so
	}
	r.OnAnswer(func(info *dunlin.AnswerInfo) { end(span, info) })
	return next(r)
}

// end ends the span of a request with what the client got.
func end(span trace.Span, info *dunlin.AnswerInfo) {
	status := info.Status()
	if status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if n := info.Bytes(); n >= 0 {
		span.SetAttributes(attribute.Int64("http.response.body.size", n))
	}
	if source := info.Source(); source != dunlin.FromAction {
		span.SetAttributes(attribute.String("dunlin.answer.source", source.String()))
	}
	if err := info.Err(); err != nil && status >= http.StatusInternalServerError {
		span.RecordError(err)
	}
	switch {
	case info.Dropped():
		span.SetAttributes(attribute.String("error.type", "dropped"))
		span.SetStatus(codes.Error, "the client got no answer, or not all of it")
	case status >= http.StatusInternalServerError:
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// other is the method of requests with one that nobody knows, of which clients could make any number.
const other = "_OTHER"

// known returns the method as attributes have it, and whether that is as the request has it.
func (c *Config) known(method string) (string, bool) {
	if slices.Contains(c.Methods, method) {
		return method, true
	}
	return other, false
}

// mostText bounds what a client may have put into an attribute, in bytes.
const mostText = 256

func bounded(s string) string {
	if len(s) > mostText {
		s = s[:mostText]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// inUTF8 returns what was registered in UTF-8, as exporters want it: other bytes are percent-encoded, as clients send them, so that routes which
// differ in nothing else stay apart.
func inUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		if n == 1 && s[0] >= utf8.RuneSelf {
			fmt.Fprintf(&b, "%%%02X", s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// attributes returns what is known of a request before it is answered.
func (c *Config) attributes(r *dunlin.Request) []attribute.KeyValue {
	method, known := c.known(r.Method())
	all := make([]attribute.KeyValue, 0, 14)
	all = append(all, attribute.String("http.request.method", method), attribute.String("url.scheme", scheme(r.Secure())), attribute.String("url.path", bounded(r.SentPath())))
	if !known {
		all = append(all, attribute.String("http.request.method_original", bounded(r.Method())))
	}
	if query := redacted(r.RawQuery()); query != "" {
		all = append(all, attribute.String("url.query", query))
	}
	if route := r.Route(); route != "" {
		all = append(all, attribute.String("http.route", inUTF8(route)))
	}
	all = append(all, address("server", bounded(r.Host()))...)
	if remote := r.Remote(); remote.IsValid() {
		all = append(all, attribute.String("client.address", remote.Addr().String()))
	}
	if peer := r.Peer(); peer.IsValid() {
		all = append(all, attribute.String("network.peer.address", peer.Addr().String()), attribute.Int("network.peer.port", int(peer.Port())))
	}
	if inside != nil {
		if version := inside.Version(r); version != "" {
			all = append(all, attribute.String("network.protocol.version", version))
		}
	}
	if agent := r.Header("User-Agent"); agent != "" {
		all = append(all, attribute.String("user_agent.original", bounded(agent)))
	}
	return all
}

// address returns the attributes of a host with or without a port.
func address(of, hostport string) []attribute.KeyValue {
	if hostport == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return []attribute.KeyValue{attribute.String(of+".address", strings.Trim(hostport, "[]"))}
	}
	all := []attribute.KeyValue{attribute.String(of+".address", host)}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		all = append(all, attribute.Int(of+".port", int(n)))
	}
	return all
}

// A carrier has the trace context of a request.
type carrier struct{ r *dunlin.Request }

func (c carrier) Set(string, string) {} // it is read only
func (c carrier) Keys() []string     { return nil }

// Get returns the values of a header in one. Those of the two that are lists have no empty members, which stand for nothing
// (RFC 9110, section 5.6.1), and which empty lines become: a Propagator would drop the whole of the list for one.
func (c carrier) Get(name string) string {
	list := c.r.HeaderList(name)
	if !strings.EqualFold(name, "tracestate") && !strings.EqualFold(name, "baggage") {
		return list
	}
	if members := strings.Split(list, ","); slices.ContainsFunc(members, isBlank) {
		return strings.Join(slices.DeleteFunc(members, isBlank), ",")
	}
	return list
}

func isBlank(s string) bool { return strings.Trim(s, " \t") == "" }
