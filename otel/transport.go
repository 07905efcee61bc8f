package otel

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a RoundTripper that writes the trace context of a request's context into the headers
// of the request and calls base, or http.DefaultTransport if base is nil. If the context has a recording
// span, Transport creates a child span for the call, which ends when the head of the response has
// arrived. Baggage is sent even without a trace. Config.Ratio and Public have no effect. Pass
// [dunlin.Request.Context] as the context of the outgoing request. Transport panics for an invalid
// setting. The result is safe for concurrent use.
func Transport(base http.RoundTripper, c Config) http.RoundTripper {
	c.setDefaults()
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base, c, c.TracerProvider.Tracer(scope)}
}

type transport struct {
	base   http.RoundTripper
	config Config
	tracer trace.Tracer
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	within := trace.SpanFromContext(ctx)
	if !within.SpanContext().IsValid() {
		none := propagation.MapCarrier{}
		if t.config.Propagator.Inject(ctx, none); len(none) == 0 {
			return t.base.RoundTrip(req)
		}
	}
	var span trace.Span
	if within.IsRecording() {
		original := req.Method
		if original == "" {
			original = http.MethodGet
		}
		method, known := t.config.known(original)
		name := method
		all := append(server(req.URL), attribute.String("http.request.method", method), attribute.String("url.full", bare(req.URL)))
		if !known {
			name = "HTTP"
			all = append(all, attribute.String("http.request.method_original", bounded(original)))
		}
		if n := resends(req); n > 0 {
			all = append(all, attribute.Int("http.request.resend_count", n))
		}
		ctx, span = t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(all...))
		asked := span
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { asked.SetAttributes(peer(got.Conn)...) }})
	}
	own := req.Clone(ctx)     // a RoundTripper must not modify its request
	own.Trailer = req.Trailer // not a copy, because the values of Trailer are set while the body is read
	t.config.Propagator.Inject(ctx, propagation.HeaderCarrier(own.Header))
	resp, err := t.base.RoundTrip(own)
	if span == nil {
		return resp, err
	}
	defer span.End()
	if err != nil {
		if errors.Is(err, context.Canceled) && errors.Is(req.Context().Err(), context.Canceled) {
			return resp, err // the caller has canceled the request, which is not an error
		}
		span.SetAttributes(attribute.String("error.type", failure(err)))
		span.SetStatus(codes.Error, err.Error())
		return resp, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode), attribute.String("network.protocol.version", version(resp)))
	if resp.StatusCode >= http.StatusBadRequest {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(resp.StatusCode)))
		span.SetStatus(codes.Error, "")
	}
	return resp, nil
}

// resends returns the number of earlier requests if http.Client has made req by following redirects.
func resends(req *http.Request) (n int) {
	for before := req.Response; before != nil && before.Request != nil; before = before.Request.Response {
		n++
	}
	return n
}

// peer returns the attributes of the remote end of a connection, which may be a proxy.
func peer(conn net.Conn) []attribute.KeyValue {
	switch addr := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		return []attribute.KeyValue{attribute.String("network.peer.address", addr.IP.String()), attribute.Int("network.peer.port", addr.Port)}
	case *net.UnixAddr:
		return []attribute.KeyValue{attribute.String("network.peer.address", addr.Name)}
	}
	return nil
}

// failure returns the attribute error.type of a call without a response.
func failure(err error) string {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "timeout"
	}
	return "transport"
}

// version returns the HTTP version of a response: 1.1, 2.
func version(resp *http.Response) string {
	if resp.ProtoMajor >= 2 {
		return strconv.Itoa(resp.ProtoMajor)
	}
	return strconv.Itoa(resp.ProtoMajor) + "." + strconv.Itoa(resp.ProtoMinor)
}

// server returns the attributes of the server of a URL. If the URL has no port, they have the default
// port.
func server(u *url.URL) []attribute.KeyValue {
	all := address("server", u.Host)
	if u.Port() == "" {
		switch u.Scheme {
		case "http":
			all = append(all, attribute.Int("server.port", 80))
		case "https":
			all = append(all, attribute.Int("server.port", 443))
		}
	}
	return all
}

// bare returns a URL without the parts that may be secret: the user information and the values of the
// query.
func bare(u *url.URL) string {
	own := *u
	if own.User != nil {
		own.User = url.UserPassword("REDACTED", "REDACTED")
	}
	own.RawQuery = redacted(own.RawQuery)
	return own.String()
}

// redacted returns a query with "REDACTED" in place of its values. A part without a name may be secret
// and is also replaced. The length of the result is limited.
func redacted(query string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(query, "&") {
		name, _, named := strings.Cut(part, "=")
		switch {
		case b.Len()+len(name) > maxText:
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		case part == "":
			continue
		case b.Len() > 0:
			b.WriteByte('&')
		}
		if named {
			b.WriteString(name + "=")
		}
		b.WriteString("REDACTED")
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
