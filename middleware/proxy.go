package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin"
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

	// Logger gets what goes wrong, at level Warn. Default: slog.Default() at the time of the call of Proxy.
	Logger *slog.Logger
}

// Proxy is the action that has another server answer, by [httputil.ReverseProxy]: bodies pass piece by piece both
// ways, event streams at once, and connections are upgraded (WebSocket). It is for routes of any method:
//
//	app.Handle("*", "/legacy/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: target}))
//
// The server behind is told who asks by X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto. What clients
// have sent of these and of Forwarded is dropped, unless they are among Config.TrustedProxies: then
// X-Forwarded-For is continued, and the scheme is the one that the proxy has said. Hop-by-hop headers do not pass
// (RFC 9110 section 7.6.1). A server that cannot be reached is answered for with 502, one that does not answer in time with
// 504: use [dunlin.Route.Timeout] or the transport's limits.
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
			if from != nil && from.trusted {
				p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
			}
			p.SetXForwarded()
			if from != nil && from.secure {
				p.Out.Header.Set("X-Forwarded-Proto", "https")
			}
			if c.Rewrite != nil {
				c.Rewrite(p)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client has gone
			}
			status, detail := http.StatusBadGateway, "the server behind could not be reached"
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err) {
				status, detail = http.StatusGatewayTimeout, "the server behind did not answer in time"
			}
			if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
				status, detail = http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than the limit of %d bytes", tooLarge.Limit)
			}
			c.Logger.Warn("proxy: no answer", "target", target.Redacted(), "status", status, "error", err)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
		},
		ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	act := dunlin.FromStd(proxy)
	return func(r *dunlin.Request) dunlin.Response {
		from := &forwarded{trusted: r.Remote() != r.Peer(), secure: r.Secure()}
		r.SetContext(context.WithValue(r.Context(), forwardedKey{}, from))
		return act(r)
	}
}

// forwarded is what the core knows of who asks, and net/http does not.
type forwarded struct {
	trusted bool // by a proxy that has said who
	secure  bool
}

type forwardedKey struct{}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
