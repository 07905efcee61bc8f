// Package dunlintest helps to test services: it answers requests of ordinary HTTP clients by an
// app in memory, without a listener or a port.
//
//	client := dunlintest.NewClient(app)
//	resp, err := client.Get("http://example.com/users/7")
//
// Requests take the same way through routes, middleware, policies and timeouts as those of
// a server. What belongs to connections is left out: limits on their number, on slowness and on
// heads, HTTP/2, hijacking. Tests of these start a server, see [Serve]. Requests for https URLs have come by TLS, as
// the app sees them.
package dunlintest

import (
	"cmp"
	"crypto/tls"
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memhttp"
)

// NewClient returns a client whose requests, whatever their host, are answered by app. It
// follows redirects as any client does.
func NewClient(app *dunlin.App) *http.Client { return &http.Client{Transport: NewTransport(app)} }

// NewTransport returns what NewClient has as its Transport, for clients with settings of their
// own. It is safe for any number of goroutines. Requests that it answers are not counted by route.
func NewTransport(app *dunlin.App) http.RoundTripper {
	server := app.Extension(exchange.ServerKey{}, nil).(*exchange.Server)
	return transport{server}
}

type transport struct{ server *exchange.Server }

// RoundTrip answers a request. The body of the answer comes as the action writes it; to close
// it ends the context of the request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.Clone(req.Context())
	own.Method = cmp.Or(req.Method, http.MethodGet)
	own.Host = cmp.Or(req.Host, req.URL.Host)
	own.RequestURI = req.URL.RequestURI()
	own.RemoteAddr = cmp.Or(req.RemoteAddr, "192.0.2.1:1234") // of the block for examples (RFC 5737)
	if req.URL.Scheme == "https" && own.TLS == nil {
		own.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: req.URL.Hostname()}
	}
	own.Proto, own.ProtoMajor, own.ProtoMinor = "HTTP/1.1", 1, 1
	switch {
	case req.Body == nil:
		own.Body = http.NoBody
	case req.ContentLength == 0 && req.Body != http.NoBody:
		own.ContentLength = -1 // as clients say that they do not know it
	case req.ContentLength > 0:
		own.Body = &sized{req.Body, req.ContentLength}
	}
	resp, err := memhttp.Serve(t.server, own)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// sized is a body that must be as long as was announced.
type sized struct {
	io.ReadCloser
	left int64
}

func (b *sized) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
