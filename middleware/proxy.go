package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// ProxyConfig says where requests go.
type ProxyConfig struct {
	// Target is the server behind: scheme and host, and a path that stands before that of the request.
	Target *url.URL

	// Transport sends the requests. Default: a copy of http.DefaultTransport that dials within
	// 5 s, keeps 100 idle connections to a host, and lets bodies pass as they are encoded.
	Transport http.RoundTripper

	// KeepHost passes on the host that the client asked for. Default: that of Target.
	KeepHost bool

	// Rewrite changes the request before it is sent, after all this. It is for one goroutine at a time and must
	// not keep it. Default: nothing.
	Rewrite func(*httputil.ProxyRequest)

	// Logger gets what goes wrong, at level Warn, or Debug where it is a client's fault. Default: slog.Default() at the time of the call of Proxy.
	Logger *slog.Logger
}

// Proxy is the action that has another server answer, by [httputil.ReverseProxy]: bodies pass piece by piece both
// ways, event streams at once, and connections are upgraded (WebSocket). It is for routes of any method:
//
//	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target}))
//
// The server behind is told who asks by X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto. What clients
// have sent of these and of Forwarded is dropped. Where they are among Config.TrustedProxies, X-Forwarded-For begins with the
// client's address, as [dunlin.Request.Remote] has it, and the scheme is the one that the proxy has said. Hop-by-hop headers do not pass
// (RFC 9110 section 7.6.1), nor do upgrades to HTTP/2 or TLS, on which further requests would go past what stands in front of the proxy, nor
// what net/http cannot parse of the query, such as parameters with a semicolon between: nobody in front has seen it. A server that cannot be reached is answered for with 502, one that does not answer in the time that the transport
// has for it with 504; when that of [dunlin.Route.Timeout] is over the client gets the 503 of all late actions. A request body that is too large,
// too slow, cut short or malformed is the client's: 413, 408 or 400. How large it may be is for [dunlin.Route.MaxBody] and
// [dunlin.Group.MaxBody] to say; Config.MaxBody does not bound it.
//
// It panics for a target without scheme or host.
func Proxy(c ProxyConfig) dunlin.Action {
	if c.Target == nil || c.Target.Host == "" || c.Target.Scheme != "http" && c.Target.Scheme != "https" {
		panic(fmt.Sprintf("middleware: Proxy: Target is %v: it must have the scheme http or https, and a host", c.Target))
	}
	target := *c.Target
	if c.Transport == nil {
		transport := &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          1000,
			MaxIdleConnsPerHost:   100,
			IdleConnTimeout:       60 * time.Second,
			TLSHandshakeTimeout:   5 * time.Second,
			ExpectContinueTimeout: time.Second,
			DisableCompression:    true,
		}
		c.Transport = transport
	}
	c.Logger = patient(c.Logger)
	proxy := &httputil.ReverseProxy{
		Transport: c.Transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&target)
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
			withoutTunnel(p.Out.Header)
			maps.DeleteFunc(p.Out.Trailer, func(name string, _ []string) bool {
				return !isToken(name) || // for which nothing would be sent
					http1.ForbiddenInTrailer([]byte(name)) // what it says would pass whoever has looked at the head
			})
			if from != nil {
				if p.Out, from.body = watchBody(p.Out); from.body != nil {
					from.body.sent, from.body.passedOn = p.In.Trailer, p.Out.Trailer
				}
			}
			if c.Rewrite != nil {
				c.Rewrite(p)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode < 100 { // which nobody can pass on
				return fmt.Errorf("the server behind answers with the status %03d", resp.StatusCode)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
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
			c.Logger.Log(r.Context(), level, "proxy: no answer", "target", target.Redacted(), "status", status, "error", err)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
		},
		ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	act := dunlin.FromStd(proxy)
	return func(r *dunlin.Request) dunlin.Response {
		from := &forwarded{secure: r.Secure()}
		if remote := r.Remote(); remote != r.Peer() {
			from.client = remote.Addr()
		}
		r.SetContext(context.WithValue(r.Context(), forwardedKey{}, from))
		return act(r)
	}
}

// withoutTunnel has a request ask for no protocol by which its client would send further requests to the server behind: none of what stands in
// front of the proxy would see them.
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

// forwarded is what the core knows of who asks, and net/http does not.
type forwarded struct {
	client netip.Addr // the peer, a proxy that is trusted, has said who: by which header is not known here, and no other counts
	secure bool
	body   *watchedBody
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
