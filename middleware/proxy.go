package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/watchbody"
	"github.com/dunlinhttp/dunlin/resilience"
)

// ProxyConfig has the settings of [Proxy]. Target must be set.
type ProxyConfig struct {
	// Target is the URL of the upstream server: scheme and host, and a path that is prepended to the
	// path of the request.
	Target *url.URL

	// Transport sends the requests. Default: a transport like http.DefaultTransport, but with 5 s to
	// dial, 100 idle connections per host, and without changes to the encoding of bodies.
	Transport http.RoundTripper

	// KeepHost forwards the request's Host. Default: the host of Target.
	KeepHost bool

	// AmbiguousPaths forwards paths that servers interpret in different ways, see [Proxy]. The upstream
	// may interpret such a path as the path of another route, which has other middleware, or as a path
	// outside of Target's path. Default: such requests are answered with 400.
	AmbiguousPaths bool

	// Rewrite changes the request as the last step before it is sent. It must be safe for
	// concurrent use, and must not keep the request. Default: no change.
	Rewrite func(*httputil.ProxyRequest)

	// Logger logs failures at level Warn, or Debug if the client caused them. An open [resilience.Breaker]
	// is logged at most once a second. Default: slog.Default() at the time of the call of Proxy.
	Logger *slog.Logger
}

// Proxy returns the action that forwards requests to an upstream server, by
// [httputil.ReverseProxy]. Bodies are streamed in both directions, and events as they arrive.
// Connections can be upgraded (WebSocket). The action can serve routes of any method:
//
//	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target}))
//
// X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto describe the client to the upstream. The
// client's own values of these fields, and of Forwarded, are removed. If the connection comes from
// one of Config.Proxy.Trusted, X-Forwarded-For begins with the client's address, as in
// [dunlin.Request.Remote], and X-Forwarded-Proto has the value that this proxy sent.
//
// A path that the upstream may interpret in another way than the router is answered with 400: a path
// with an escaped slash (%2F), a backslash, a semicolon, a control character or an overlong encoding of
// UTF-8, each plain or escaped, or with an empty or dot segment. The reason is that the upstream may
// serve the path of another route without the middleware of that route. ProxyConfig.AmbiguousPaths
// forwards such paths.
//
// # The proxy does not forward
//
// - hop-by-hop headers (RFC 9110 section 7.6.1), and fields that Connection names, unless middleware has set them by [ext.WithHeaders]. So a client can remove fields that standard middleware has set, by naming them in Connection;
// - upgrades to HTTP/2 or TLS: further requests on such a connection would bypass the middleware before the proxy;
// - parts of the query that net/http cannot parse, such as parameters separated by a semicolon, since no earlier middleware has seen them.
//
// If the upstream cannot be reached, or closes the connection before the head of its response has been
// sent to the client, the client gets 502. Therefore the first 32 KB of a response with a length are
// held back. If the upstream closes the connection later, the client's connection is cut, so that the
// client detects that the response is incomplete. If the upstream does not respond within the
// transport's timeouts, the client gets 504. If the [resilience.Breaker] of the transport is open, the
// client gets 503 and Retry-After. After [dunlin.Route.Timeout] the client gets 503, as from every
// action. A request body that is too large, too slow, truncated or malformed is an error of the client:
// 413, 408 or 400. [dunlin.Route.MaxBody] and [dunlin.Group.WithMaxBody] limit the body;
// Config.Limits.MaxBody does not.
//
// Proxy panics for a target without scheme or host.
func Proxy(c ProxyConfig) dunlin.Action {
	if c.Target == nil || c.Target.Host == "" || c.Target.Scheme != "http" && c.Target.Scheme != "https" {
		panic(fmt.Sprintf("middleware: Proxy: Target is %v: it must have the scheme http or https, and a host", c.Target))
	}
	target := *c.Target // the caller may change *c.Target later
	c.Target = &target
	if c.Transport == nil {
		c.Transport = newProxyTransport()
	}
	c.Logger = patient(c.Logger)
	var notAsked logqueue.Repeated
	act := dunlin.FromStd(&httputil.ReverseProxy{
		Transport:      c.Transport,
		Rewrite:        c.rewrite,
		ModifyResponse: receive,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			c.answerError(w, r, err, &notAsked)
		},
		ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	})
	return func(r *dunlin.Request) (resp dunlin.Response) {
		if why := ambiguous(r.Path()); why != "" && !c.AmbiguousPaths {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the path has " + why + ", which servers interpret differently"})
		}
		from := &forwarded{secure: r.Secure(), own: ownNamed(r)}
		if remote := r.Remote(); remote != r.Peer() {
			from.client = remote.Addr()
		}
		r.SetContext(context.WithValue(r.Context(), forwardedKey{}, from))
		defer func() {
			cut := from.cut.Load()
			if cut == nil || r.Context().Err() != nil {
				return
			}
			switch v := recover(); {
			case v != nil && v != http.ErrAbortHandler:
				panic(v)
			case v == nil && resp.Len() < 0:
				return // the response is being sent, and the sending goroutine cuts it
			}
			resp = dunlin.Problem(c.cutShort(r, from, *cut))
		}()
		if resp = act(r); resp.Len() >= 0 {
			if p := from.failed.Load(); p != nil {
				return dunlin.Problem(p)
			}
		}
		return resp
	}
}

// newProxyTransport returns the default of ProxyConfig.Transport.
func newProxyTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          1000,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
}

// rewrite makes the request to the upstream.
func (c *ProxyConfig) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(c.Target)
	if c.KeepHost {
		p.Out.Host = p.In.Host
	}
	from, _ := p.In.Context().Value(forwardedKey{}).(*forwarded)
	if from != nil && from.client.IsValid() {
		p.Out.Header.Set("X-Forwarded-For", from.client.String())
	}
	p.SetXForwarded()
	if from != nil && from.client.IsValid() && p.Out.Header.Get("X-Forwarded-For") == "" { // the peer has no address
		p.Out.Header.Set("X-Forwarded-For", from.client.String())
	}
	if from != nil && from.secure {
		p.Out.Header.Set("X-Forwarded-Proto", "https")
	}
	if from != nil {
		for _, name := range from.own {
			p.Out.Header[name] = slices.Clone(p.In.Header[name])
		}
	}
	withoutTunnel(p.Out.Header)
	maps.DeleteFunc(p.Out.Trailer, func(name string, _ []string) bool {
		return !isToken(name) || // net/http would fail to send it
			http1.ForbiddenInTrailer([]byte(name)) // middleware before the proxy has checked this field only in the head
	})
	if from != nil {
		if p.Out, from.body = watchbody.Of(p.Out); from.body != nil {
			from.body.From, from.body.To = p.In.Trailer, p.Out.Trailer
		}
	}
	if c.Rewrite != nil {
		c.Rewrite(p)
	}
}

// receive rejects a response that cannot be forwarded. It wraps the body of any other response in an answerBody.
func receive(resp *http.Response) error {
	switch {
	case resp.StatusCode < 100:
		return fmt.Errorf("upstream sent the invalid status %03d", resp.StatusCode)
	case resp.StatusCode != http.StatusSwitchingProtocols && resp.Request != nil: // another transport may leave Request nil
		if from, _ := resp.Request.Context().Value(forwardedKey{}).(*forwarded); from != nil {
			resp.Body = &answerBody{resp.Body, from}
		}
	}
	return nil
}

// An answerBody is the body of a response. It records an error of reading the body in from.
type answerBody struct {
	io.ReadCloser
	from *forwarded
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.from.cut.Store(&err)
	}
	return n, err
}

// cutShort returns the problem for a response of the upstream that was cut off before its head was sent to the client.
func (c *ProxyConfig) cutShort(r *dunlin.Request, from *forwarded, cut error) *dunlin.ProblemDetails {
	p, level := &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the upstream closed the connection mid-response"}, slog.LevelWarn
	if failure := from.bodyFailure(); failure != nil {
		level = slog.LevelDebug
		p.Status, p.Detail = ofClient(failure)
	} else if isTimeout(cut) {
		p.Status, p.Detail = http.StatusGatewayTimeout, "the upstream did not respond in time"
	}
	c.Logger.Log(r.Context(), level, "proxy: incomplete response", "target", c.Target.Redacted(), "status", p.Status, "error", cut)
	return p
}

// answerError answers a request that got no response from the upstream.
func (c *ProxyConfig) answerError(w http.ResponseWriter, r *http.Request, err error, notAsked *logqueue.Repeated) {
	p, level := &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the upstream could not be reached"}, slog.LevelWarn
	from, _ := r.Context().Value(forwardedKey{}).(*forwarded)
	if failure := from.bodyFailure(); failure != nil {
		level = slog.LevelDebug
		p.Status, p.Detail = ofClient(failure)
	} else if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	} else if isTimeout(err) {
		p.Status, p.Detail = http.StatusGatewayTimeout, "the upstream did not respond in time"
	}
	if errors.Is(err, resilience.ErrOpen) { // log once for many requests
		p.Status, p.Detail, p.Temporary = http.StatusServiceUnavailable, "the upstream is temporarily unavailable", true
		if n, due := notAsked.Note(); due {
			c.Logger.WarnContext(r.Context(), "proxy: circuit breaker is open", "target", c.Target.Redacted(), "status", p.Status, "error", err, "count", n)
		}
	} else {
		c.Logger.Log(r.Context(), level, "proxy: no response", "target", c.Target.Redacted(), "status", p.Status, "error", err)
	}
	if from != nil {
		from.failed.Store(p)
	}
	w.WriteHeader(p.Status)
}

// withoutTunnel removes a request for an upgrade to HTTP/2 or TLS. After such an upgrade the client
// could send further requests to the upstream, and the middleware before the proxy would not see them.
func withoutTunnel(h http.Header) {
	h.Del("HTTP2-Settings") // a part of such a request, even if Connection does not name it
	for _, line := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
			if strings.EqualFold(name, "h2c") || strings.EqualFold(name, "HTTP") || strings.EqualFold(name, "TLS") {
				h.Del("Upgrade")
				h.Del("Connection")
				return
			}
		}
	}
}

// forwarded has the facts about a client that net/http does not know.
type forwarded struct {
	client netip.Addr // as a trusted proxy reported; invalid if the peer is the client
	secure bool
	own    []string // fields that middleware has set by ext.WithHeaders and that Connection names
	body   *watchbody.Body
	cut    atomic.Pointer[error]                 // the error that ended the upstream's response early
	failed atomic.Pointer[dunlin.ProblemDetails] // the answer to a request that got no response from the upstream
}

type forwardedKey struct{}

// bodyFailure returns the error of reading the client's request body, or nil.
func (f *forwarded) bodyFailure() error {
	if f == nil || f.body == nil {
		return nil
	}
	return f.body.Failure()
}

// ofClient returns the response's status and detail for an error of reading the request body.
func ofClient(err error) (status int, detail string) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than the limit of %d bytes", tooLarge.Limit)
	}
	if isTimeout(err) {
		return http.StatusRequestTimeout, "the request body arrived too slowly"
	}
	return http.StatusBadRequest, "the request body is incomplete or malformed"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout()
}
