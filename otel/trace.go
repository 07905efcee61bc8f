// Package otel exports an app's requests to OpenTelemetry: traces and metrics by the semantic
// conventions for HTTP, incoming and outgoing trace context (W3C), and trace identifiers in log
// records. It is a separate module.
//
//	app.Install(otel.Tracing(otel.Config{TracerProvider: provider}))
//	client := &http.Client{Transport: otel.Transport(nil, otel.Config{TracerProvider: provider})}
//	logger := slog.New(otel.LogHandler(slog.NewJSONHandler(os.Stdout, nil)))
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(otel.NewProducer(app)))
//
// Spans and series are named by the registered route, never by the path, so that clients cannot create
// new names. Metrics are exported from the app's own statistics and add no cost to requests.
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
	"github.com/dunlinhttp/dunlin/observe"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/dunlinhttp/dunlin/otel"

// inside has the internal methods of package dunlin.
var inside = dunlin.Internal(exchange.Module{})

// Config holds the settings of Tracing and Transport. A zero field selects its documented default.
type Config struct {
	// TracerProvider creates the spans. Default: the global TracerProvider.
	TracerProvider trace.TracerProvider

	// Propagator reads and writes trace context. Default: propagation.TraceContext, the format of
	// the W3C.
	Propagator propagation.TextMapPropagator

	// Ratio is the fraction, from 0 to 1, of the requests without trusted trace context for which Tracing
	// asks the TracerProvider for a span. The TracerProvider's sampler may still reject some of them.
	// The other requests cost one header lookup and one random number. Default: all requests.
	Ratio *float64

	// Public is for a service on the Internet, to which any client may send trace context. The span of
	// a request is then the root of a new trace, with a link to the trace in the request's context. The
	// sender does not decide about sampling. Nothing of the sender's context, such as baggage, is passed
	// on to calls of the action. Default: trace context of clients is trusted.
	Public bool

	// Methods are the known methods. Spans report other methods as _OTHER, because clients can invent
	// any number of them. Default: the comma-separated list in OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS,
	// else the methods of RFC 9110, PATCH and QUERY.
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

// Tracing creates a span for each sampled request. The span is part of the trace in the request's
// trace context, or the root of a new trace. Its name and attributes follow the semantic conventions
// for HTTP servers. It ends with the response that the client gets: the span of a stream ends with the
// last byte, and the span of an action that exceeds its timeout with the 503. [dunlin.Request.Context]
// contains the span, for calls of the action.
//
// If the trace of a request is not sampled, its trace context is passed on, so that calls of the
// action are not sampled either. If Config.Ratio excludes a request, no trace context is passed on.
// Other values that the Propagator reads, such as baggage, are then passed on unless Config.Public is
// set. Responses that are sent before middleware runs, for example in an overload, have no span.
//
// Install Tracing before other features. It panics for an invalid setting.
func Tracing(c Config) dunlin.Feature {
	c.setDefaults()
	tracer := c.TracerProvider.Tracer(scope)
	var fields []string
	for _, name := range c.Propagator.Fields() {
		fields = append(fields, http.CanonicalHeaderKey(name)) // canonical names are found faster
	}
	return dunlin.Hooks{Wrap: func(next dunlin.Action) dunlin.Action {
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
					ctx, carried = nil, false // remote is used for the link only
				}
			}
			decided := remote.IsValid() && !c.Public
			if decided && !remote.IsSampled() {
				r.SetContext(ctx)
				return next(r)
			}
			if !decided && c.Ratio != nil && rand.Float64() >= *c.Ratio {
				if carried { // keep the baggage, but not the trace of the client
					r.SetContext(trace.ContextWithRemoteSpanContext(ctx, trace.SpanContext{}))
				}
				return next(r)
			}
			return c.traced(r, ctx, remote, tracer, next)
		}
	}}
}

// traced handles a request within a span. ctx has the client's trace context, or is nil.
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
		return next(r) // the sampler of the TracerProvider has rejected the request
	}
	r.OnAnswer(func(info *dunlin.AnswerInfo) { end(span, info) })
	return next(r)
}

// end ends the span of a request with the attributes of the response.
func end(span trace.Span, info *dunlin.AnswerInfo) {
	status := info.Status()
	if status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if n := info.Bytes(); n >= 0 {
		span.SetAttributes(attribute.Int64("http.response.body.size", n))
	}
	if source := info.Source(); source != observe.SourceAction {
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

// other replaces unknown methods, because clients can invent any number of them.
const other = "_OTHER"

// known returns the method for attributes, and whether it is a known method.
func (c *Config) known(method string) (string, bool) {
	if slices.Contains(c.Methods, method) {
		return method, true
	}
	return other, false
}

// maxText is the maximum length of text from clients in an attribute, in bytes.
const maxText = 256

func bounded(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// inUTF8 returns s as valid UTF-8, which exporters require. Invalid bytes are percent-encoded, as
// in a URL, so that routes that differ only in such bytes stay distinct.
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

// attributes returns the attributes of a request that are known before its response.
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
	if version := inside.Version(r); version != "" {
		all = append(all, attribute.String("network.protocol.version", version))
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

// A carrier reads the trace context of a request.
type carrier struct{ r *dunlin.Request }

func (c carrier) Set(string, string) {} // read only
func (c carrier) Keys() []string     { return nil }

// Get returns the values of a header, joined. It removes empty members of tracestate and baggage. Empty
// field lines cause them, and they have no meaning (RFC 9110, section 5.6.1), but a Propagator drops the
// whole list because of an empty member.
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
