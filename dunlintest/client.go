// Package dunlintest supports tests of services. Its HTTP clients send requests to an app in memory, without a
// listener or a port.
//
//	client := dunlintest.NewClient(app)
//	resp, err := client.Get("http://example.com/users/7")
//
// Requests pass through routing, middleware, features and timeouts as in a server. What needs a connection does not
// work: limits on connections, slow clients and header sizes, HTTP/2, hijacking. Use [Serve] to test these. For the
// app, a request for an https URL is a TLS request.
package dunlintest

import (
	"cmp"
	"crypto/tls"
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memhttp"
)

// NewClient returns a client that sends every request to app, for any host. It follows redirects.
func NewClient(app *dunlin.App) *http.Client { return &http.Client{Transport: NewTransport(app)} }

// NewTransport returns the transport of NewClient, for clients with their own settings. The transport is safe for
// concurrent use. The statistics of routes do not count its requests.
func NewTransport(app *dunlin.App) http.RoundTripper {
	server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
	return transport{server}
}

type transport struct{ server *exchange.Server }

// RoundTrip sends a request to the app. The response body is streamed as the action writes it. Closing it cancels
// the context of the request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.Clone(req.Context())
	own.Method = cmp.Or(req.Method, http.MethodGet)
	own.Host = cmp.Or(req.Host, req.URL.Host)
	own.RequestURI = req.URL.RequestURI()
	own.RemoteAddr = cmp.Or(req.RemoteAddr, "192.0.2.1:1234") // a documentation address (RFC 5737)
	if req.URL.Scheme == "https" && own.TLS == nil {
		own.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: req.URL.Hostname()}
	}
	own.Proto, own.ProtoMajor, own.ProtoMinor = "HTTP/1.1", 1, 1
	switch {
	case req.Body == nil:
		own.Body = http.NoBody
	case req.ContentLength == 0 && req.Body != http.NoBody:
		own.ContentLength = -1 // the length is unknown
	case req.ContentLength > 0:
		own.Body = &sized{req.Body, req.ContentLength}
	}
	resp, err := memhttp.Serve(t.server, own)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// A sized body fails if its length differs from the announced length.
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
