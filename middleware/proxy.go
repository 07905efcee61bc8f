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
)

// ProxyConfig says where requests go.
type ProxyConfig struct {
	// Target is the server behind: scheme and host, and a path that is put in front of the request's.
	Target *url.URL

	// Transport sends the requests. Default: a copy of http.DefaultTransport that dials within
	// 5 s, keeps 100 idle connections to a host, and lets bodies pass as they are encoded.
	Transport http.RoundTripper

	// KeepHost passes on the host that the client asked for. Default: that of Target.
	KeepHost bool

	// AmbiguousPaths passes on paths that servers read in different ways, see [Proxy]. The server behind may take such a path for one that
	// another route guards, or for one outside of Target's. Default: they are answered with 400.
	AmbiguousPaths bool

	// Rewrite changes the request before it is sent, after all else has. It is called on many goroutines at a time,
	// and must not keep the request. Default: nothing.
	Rewrite func(*httputil.ProxyRequest)

	// Logger gets what goes wrong, at level Warn, or Debug where it is a client's fault; that a [Breaker] is
	// open, once a second at most. Default: slog.Default() at the time of the call of Proxy.
	Logger *slog.Logger
}

// Proxy returns the action that has another server answer, by [httputil.ReverseProxy]: bodies pass piece by
// piece both ways, events as they come, and connections can be upgraded (WebSocket). It is for routes of any
// method:
//
//	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target}))
//
// X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto tell the server behind who asks; what the client
// sent of these and of Forwarded is dropped. If the connection is that of one of Config.TrustedProxies,
// X-Forwarded-For begins with the client's address, as [dunlin.Request.Remote] has it, and X-Forwarded-Proto
// is what that proxy said.
//
// A path that the server behind may read in another way than the router gets 400: one with an escaped slash (%2F), a backslash, a semicolon, a
// control character or an overlong encoding of UTF-8, each plain or escaped, or with an empty or dot segment. Other routes, which may
// guard a part of the paths, do not match what the server makes of it. ProxyConfig.AmbiguousPaths passes them on.
//
// Not passed on are hop-by-hop headers (RFC 9110 section 7.6.1), and fields that Connection names, unless middleware has set them
// by [dunlin.Request.WithHeaders]: what standard middleware sets a client can have removed; upgrades to HTTP/2 or TLS, on which further
// requests would bypass what stands in front of the proxy; and what net/http cannot parse of the query, such
// as parameters separated by a semicolon, since nothing in front has seen it.
//
// A server that cannot be reached is answered for with 502, as is one that breaks off its answer while none of it has been sent: of
// an answer that says its length, the first 32 KB are held back. Later the connection is cut, so that nobody takes the part for the
// whole. One that does not answer within the transport's
// timeouts with 504, and one that is not asked because the [Breaker] of the transport is open with 503 and
// Retry-After; after [dunlin.Route.Timeout] the client gets the 503 of all late actions. A request body that
// is too large, too slow, cut short or malformed is the client's fault: 413, 408 or 400.
// [dunlin.Route.MaxBody] and [dunlin.Group.MaxBody] bound it; Config.MaxBody does not.
//
// Proxy panics for a target without scheme or host.
func Proxy(c ProxyConfig) dunlin.Action {
	if c.Target == nil || c.Target.Host == "" || c.Target.Scheme != "http" && c.Target.Scheme != "https" {
		panic(fmt.Sprintf("middleware: Proxy: Target is %v: it must have the scheme http or https, and a host", c.Target))
	}
	target := *c.Target // which is the caller's to change
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
			return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the path has " + why + ", which servers read in different ways"})
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
				return // what it sends has begun, and breaks off there: its goroutine may be ahead of this one
			}
			resp = dunlin.Problem(c.cutShort(r, from, *cut))
		}()
		return act(r)
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

// rewrite makes the request to the server behind.
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
	if from != nil && from.client.IsValid() && p.Out.Header.Get("X-Forwarded-For") == "" { // of a peer that has no address
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
		return !isToken(name) || // for which nothing would be sent
			http1.ForbiddenInTrailer([]byte(name)) // those in front of the proxy have looked at the head alone
	})
	if from != nil {
		if p.Out, from.body = watchBody(p.Out); from.body != nil {
			from.body.sent, from.body.passedOn = p.In.Trailer, p.Out.Trailer
		}
	}
	if c.Rewrite != nil {
		c.Rewrite(p)
	}
}

// receive fails for a response that cannot be passed on, and has others tell whether they come to their end.
func receive(resp *http.Response) error {
	switch {
	case resp.StatusCode < 100:
		return fmt.Errorf("the server behind answers with the status %03d", resp.StatusCode)
	case resp.StatusCode != http.StatusSwitchingProtocols && resp.Request != nil: // a transport of others may not say
		if from, _ := resp.Request.Context().Value(forwardedKey{}).(*forwarded); from != nil {
			resp.Body = &answerBody{resp.Body, from}
		}
	}
	return nil
}

// An answerBody is the body of a response, which notes why it is cut short.
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

// cutShort returns the answer in place of one of which nothing was sent when it broke off.
func (c *ProxyConfig) cutShort(r *dunlin.Request, from *forwarded, cut error) dunlin.ProblemDetails {
	p, level := dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the server behind broke off its answer"}, slog.LevelWarn
	if failure := from.bodyFailure(); failure != nil {
		level = slog.LevelDebug
		p.Status, p.Detail = ofClient(failure)
	} else if isTimeout(cut) {
		p.Status, p.Detail = http.StatusGatewayTimeout, "the server behind did not answer in time"
	}
	c.Logger.Log(r.Context(), level, "proxy: the answer broke off", "target", c.Target.Redacted(), "status", p.Status, "error", cut)
	return p
}

// answerError answers a request that got no response from the server behind.
func (c *ProxyConfig) answerError(w http.ResponseWriter, r *http.Request, err error, notAsked *logqueue.Repeated) {
	status, detail, level := http.StatusBadGateway, "the server behind could not be reached", slog.LevelWarn
	from, _ := r.Context().Value(forwardedKey{}).(*forwarded)
	if failure := from.bodyFailure(); failure != nil {
		level = slog.LevelDebug
		status, detail = ofClient(failure)
	} else if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone
	} else if isTimeout(err) {
		status, detail = http.StatusGatewayTimeout, "the server behind did not answer in time"
	}
	if errors.Is(err, ErrOpen) { // of as many requests as come, and for the moment
		status, detail = http.StatusServiceUnavailable, "the server behind does not answer for the moment"
		w.Header().Set("Retry-After", "1")
		if n, due := notAsked.Note(); due {
			c.Logger.WarnContext(r.Context(), "proxy: not asked", "target", c.Target.Redacted(), "status", status, "error", err, "count", n)
		}
	} else {
		c.Logger.Log(r.Context(), level, "proxy: no answer", "target", c.Target.Redacted(), "status", status, "error", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
}

// withoutTunnel removes the request for a protocol by which the client could send further requests straight to the
// server behind: nothing that stands in front of the proxy would see those.
func withoutTunnel(h http.Header) {
	h.Del("HTTP2-Settings") // of such an upgrade, whether Connection names it or not
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

// forwarded is what Dunlin knows of a client and net/http does not.
type forwarded struct {
	client netip.Addr // as a trusted proxy has said, by whatever header; invalid if the peer is the client
	secure bool
	own    []string // fields that middleware has set and Connection names
	body   *watchedBody
	cut    atomic.Pointer[error] // why the response of the server behind came to no end
}

type forwardedKey struct{}

// bodyFailure returns why the client's body could not be read, nil if it could.
func (f *forwarded) bodyFailure() error {
	if f == nil || f.body == nil {
		return nil
	}
	return f.body.failure()
}

// ofClient returns what a client is told whose request body could not be read.
func ofClient(err error) (status int, detail string) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than the limit of %d bytes", tooLarge.Limit)
	}
	if isTimeout(err) {
		return http.StatusRequestTimeout, "the request body came too slowly"
	}
	return http.StatusBadRequest, "the request body is cut short or malformed"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout()
}
