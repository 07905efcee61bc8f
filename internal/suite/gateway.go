package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memhttp"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// A gateway accepts HTTP/1.1 from tests and forwards their requests to an adapter with another protocol. So tests
// written in bytes of HTTP/1.1 run on every adapter. net/http parses and writes requests and answers, one after the
// other.
type gateway struct {
	ln    net.Listener
	dial  func() (ask func(*http.Request) (*http.Response, error), hangUp func()) // per connection
	mu    sync.Mutex
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

// startGateway listens until the test ends.
func startGateway(t *testing.T, dial func() (ask func(*http.Request) (*http.Response, error), hangUp func())) (addr string) {
	t.Helper()
	g := &gateway{ln: Listen(t), dial: dial, conns: make(map[net.Conn]bool)}
	g.all.Go(func() {
		for {
			conn, err := g.ln.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns[conn] = true
			g.mu.Unlock()
			g.all.Go(func() { g.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = g.ln.Close()
		g.mu.Lock()
		for conn := range g.conns {
			_ = conn.Close()
		}
		g.mu.Unlock()
		g.all.Wait()
	})
	return g.ln.Addr().String()
}

// serve forwards the requests of a connection until it ends.
func (g *gateway) serve(conn net.Conn) {
	defer conn.Close()
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, conn.LocalAddr())
	ctx, cancel := context.WithCancel(context.WithValue(ctx, http.ServerContextKey, new(http.Server)))
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		return writeHead(conn, "HTTP/1.1", fmt.Sprint(status, " ", http.StatusText(status)), http.Header(h))
	}})
	ask, hangUp := g.dial()
	defer hangUp()
	in := newInput(conn, cancel)
	br := bufio.NewReader(in)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		req.RemoteAddr = conn.RemoteAddr().String()
		body := &gatewayBody{ReadCloser: req.Body, in: in}
		if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
			body.awaited = conn
		}
		if req.Body != http.NoBody {
			req.Body = body
		} else {
			in.watch(true)
		}
		resp, err := ask(req.WithContext(ctx))
		if err != nil {
			return
		}
		resp.Close = resp.Close || req.Close || body.awaited != nil
		err = writeAnswer(conn, req, resp)
		if err != nil || resp.Close {
			return
		}
		_ = req.Body.Close() // reads the rest of the body
		in.watch(false)
	}
}

// A gatewayBody is a request body that is requested from the client on the first read.
type gatewayBody struct {
	io.ReadCloser
	awaited net.Conn // the connection of a client that waits for 100 (Continue)
	in      *input
}

func (b *gatewayBody) Read(p []byte) (int, error) {
	if b.awaited != nil {
		_, _ = io.WriteString(b.awaited, "HTTP/1.1 100 Continue\r\n\r\n")
		b.awaited = nil
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.in.watch(true)
	}
	return n, err
}

// writeHead writes a status line and headers.
func writeHead(w io.Writer, proto, status string, h http.Header) error {
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s\r\n", proto, status)
	_ = h.Write(&head) // never fails
	head.WriteString("\r\n")
	_, err := w.Write(head.Bytes())
	return err
}

// writeAnswer writes an answer as servers of net/http do.
func writeAnswer(conn net.Conn, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	h := resp.Header.Clone()
	bodied := exchange.BodyAllowed(resp.StatusCode)
	chunked := bodied && (resp.ContentLength < 0 || len(resp.Trailer) > 0) && req.ProtoMinor > 0
	if chunked {
		h.Del("Content-Length") // HTTP/2 has both a length and trailers
		resp.ContentLength = -1
	}
	status := strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode))
	switch {
	case !bodied:
	case resp.ContentLength >= 0:
		h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	case chunked && req.Method != http.MethodHead:
		h.Set("Transfer-Encoding", "chunked")
	default:
		resp.Close = resp.Close || req.Method != http.MethodHead
	}
	if len(resp.Trailer) > 0 {
		h.Set("Trailer", strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), ", "))
	}
	switch {
	case resp.Close && req.ProtoMinor > 0:
		h.Set("Connection", "close")
	case !resp.Close && req.ProtoMinor == 0:
		h.Set("Connection", "keep-alive")
	}
	if strings.TrimSpace(status) == "" {
		status = " status code " + strconv.Itoa(resp.StatusCode)
	}
	if err := writeHead(conn, req.Proto, strconv.Itoa(resp.StatusCode)+status, h); err != nil || !bodied || req.Method == http.MethodHead {
		return err
	}
	if !chunked {
		_, err := io.Copy(conn, resp.Body)
		return err
	}
	if _, err := io.Copy(httputil.NewChunkedWriter(conn), resp.Body); err != nil {
		return err
	}
	var end bytes.Buffer
	end.WriteString("0\r\n")
	_ = resp.Trailer.Write(&end) // never fails
	end.WriteString("\r\n")
	_, err := conn.Write(end.Bytes())
	return err
}

// An input reads a connection in the background, so that its end is detected while a request is being answered.
type input struct {
	mu      sync.Mutex
	moved   sync.Cond
	here    []byte
	err     error
	watched bool   // the end means a disconnect of the client, not a partial request
	hungUp  func() // called after a disconnect
}

func newInput(conn net.Conn, hungUp func()) *input {
	in := &input{hungUp: hungUp}
	in.moved.L = &in.mu
	go func() {
		buf := make([]byte, 32<<10)
		for err := error(nil); err == nil; {
			var n int
			n, err = conn.Read(buf)
			in.mu.Lock()
			in.here, in.err = append(in.here, buf[:n]...), err
			in.moved.Broadcast()
			in.mu.Unlock()
		}
		in.checkHangup()
	}()
	return in
}

// watch declares whether a request is complete and its client waits for the answer.
func (in *input) watch(watched bool) {
	in.mu.Lock()
	in.watched = watched
	in.mu.Unlock()
	in.checkHangup()
}

func (in *input) checkHangup() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil && in.watched {
		in.hungUp()
	}
}

func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.here) == 0 && in.err == nil {
		in.moved.Wait()
	}
	if len(in.here) == 0 {
		return 0, in.err
	}
	n := copy(p, in.here)
	in.here = in.here[n:]
	return n, nil
}

// toMemory sends requests to an app in memory.
func toMemory(app *dunlin.App) func() (func(*http.Request) (*http.Response, error), func()) {
	server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
	return func() (func(*http.Request) (*http.Response, error), func()) {
		return func(req *http.Request) (*http.Response, error) { return memhttp.Serve(server, req) }, func() {}
	}
}

// toH2 sends requests to the server at addr over HTTP/2, over TLS or in clear text, over one connection per gateway
// connection.
func toH2(addr string, secure bool) func() (func(*http.Request) (*http.Response, error), func()) {
	return func() (func(*http.Request) (*http.Response, error), func()) {
		client := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: tlstest.Client(), DisableCompression: true,
			ExpectContinueTimeout: Patience}
		client.Protocols.SetHTTP2(true)
		client.Protocols.SetUnencryptedHTTP2(true)
		var mu sync.Mutex
		var conns []net.Conn
		note := func(conn net.Conn, err error) (net.Conn, error) {
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				conns = append(conns, conn)
			}
			return conn, err
		}
		client.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return note(new(net.Dialer).DialContext(ctx, network, addr))
		}
		client.DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			conf := tlstest.Client().Clone()
			conf.NextProtos = []string{"h2"}
			return note((&tls.Dialer{Config: conf}).DialContext(ctx, network, addr))
		}
		return func(req *http.Request) (*http.Response, error) { return askH2(client, secure, req) }, func() {
			mu.Lock()
			defer mu.Unlock()
			for _, conn := range conns {
				_ = conn.Close()
			}
			client.CloseIdleConnections()
		}
	}
}

// askH2 sends an HTTP/1.1 request over HTTP/2.
func askH2(client http.RoundTripper, secure bool, req *http.Request) (*http.Response, error) {
	own := req.Clone(req.Context())
	own.RequestURI, own.TransferEncoding = "", nil
	own.URL.Scheme, own.URL.Host = "http", cmp.Or(req.Host, "h.example")
	if secure {
		own.URL.Scheme = "https"
	}
	if own.URL.Path == "*" {
		own.URL = &url.URL{Scheme: own.URL.Scheme, Host: own.URL.Host, Opaque: "*"}
	}
	own.Close = false // Close belongs to the gateway's connection
	own.Header.Del("Connection")
	if own.ContentLength == 0 {
		own.Body = nil
	}
	resp, err := client.RoundTrip(own)
	if err != nil {
		return nil, err
	}
	if resp.ProtoMajor != 2 {
		return nil, errors.New("answered by " + resp.Proto)
	}
	return resp, nil
}
