package suite

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// running runs an app until the test ends and returns its n addresses.
func running(t *testing.T, n int, config dunlin.Config, register func(*dunlin.App)) (addrs []string) {
	t.Helper()
	ready := make(chan string, n)
	config.Ready = func(addr net.Addr, _ dunlin.Engine) { ready <- addr.String() }
	config.Process.DisableRestart = true
	app, _ := NewApp(config)
	register(app)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := Await(t, "the end of Run", ended); err != nil {
			t.Error(err)
		}
	})
	for range n {
		select {
		case addr := <-ready:
			addrs = append(addrs, addr)
		case err := <-ended:
			ended <- err
			t.Fatalf("Run returned %v", err)
		}
	}
	return addrs
}

// unredirected makes a client return redirects instead of following them.
func unredirected(c *http.Client) *http.Client {
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

func TestSecureOnly(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := NewCert(t)
		config := dunlin.Config{
			Engine: engine, TLS: dunlin.TLSConfig{HSTS: time.Hour, Addr: "127.0.0.1:0", Cert: certFile, Key: keyFile}, Addr: "127.0.0.1:0",
		}
		addrs := running(t, 2, config, func(app *dunlin.App) {
			app.Use(func(dunlin.Action) dunlin.Action {
				return Constant(dunlin.Text("a password, please").Status(http.StatusUnauthorized))
			})
			app.Get("/plain", Text("served"))
			app.Install(dunlin.Hooks{Headers: func(_ *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response { return resp.Header("X-Policy", "1") }})
		})
		clear, secure := addrs[0], addrs[1]
		c := unredirected(Client(t, trusted, HTTP1))
		resp, _ := Get(t, c, "http://"+clear+"/a%20b/%C3%A9?x=1&y=%2F")
		if got, want := resp.Header.Get("Location"), "https://"+secure+"/a%20b/%C3%A9?x=1&y=%2F"; resp.StatusCode != http.StatusPermanentRedirect || got != want {
			t.Errorf("got %s to %q, want 308 to %q", resp.Status, got, want)
		}
		if resp.Header.Get("Strict-Transport-Security") != "" || resp.Header.Get("X-Policy") != "1" {
			t.Errorf("in clear text: got %v", resp.Header)
		}
		for _, path := range []string{"/plain", "/missing"} {
			resp, _ := Get(t, c, "https://"+secure+path)
			if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=3600" || resp.Header.Get("X-Policy") != "1" {
				t.Errorf("%s by TLS: got %v", path, resp.Header)
			}
		}
		resp, _ = Get(t, Client(t, trusted, HTTP2), "https://"+secure+"/plain")
		if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=3600" {
			t.Errorf("by HTTP/2: got %v", resp.Header)
		}
	})
}

// Requests in clear text with a body or another method than GET are refused, not served.
func TestSecureOnlyRefusesClearText(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, TLS: dunlin.TLSConfig{HSTS: time.Hour}}, func(app *dunlin.App) {
			app.Handle("*", "/{rest...}", func(*dunlin.Request) dunlin.Response {
				t.Error("the action was called")
				return dunlin.NoContent()
			})
			app.Get("/healthz", Text("fine")).ClearText()
		})
		for _, test := range []struct{ request, status, location string }{
			{"POST /x HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello", "308", "https://example.com/x"},
			{"GET //evil.example/x HTTP/1.1\r\nHost: example.com:80\r\n\r\n", "308", "https://example.com//evil.example/x"},
			{"GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "308", "https://[::1]/x"},
			{"GET /x HTTP/1.1\r\nHost: [::1]\r\n\r\n", "308", "https://[::1]/x"},
			{"GET /x HTTP/1.0\r\n\r\n", "400", ""},
			{"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n", "400", ""},
			{"GET /healthz HTTP/1.1\r\nHost: example.com\r\n\r\n", "200", ""},
			{"GET /healthz HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-Proto: https\r\n\r\n", "200", ""},
			{"GET /x HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-Proto: https\r\n\r\n", "308", "https://example.com/x"},
		} {
			conn := AskConn(t, addr, test.request)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%q: %v", test.request, err)
			}
			_ = resp.Body.Close()
			if got := resp.Header.Get("Location"); !strings.HasPrefix(resp.Status, test.status) || got != test.location {
				t.Errorf("%q: got %s to %q, want %s to %q", test.request, resp.Status, got, test.status, test.location)
			}
		}
	})
}

// A trusted proxy reports whether its client used TLS.
func TestSecureOnlyBehindProxy(t *testing.T) {
	app, _ := NewApp(dunlin.Config{TLS: dunlin.TLSConfig{HSTS: time.Minute}, Proxy: dunlin.ProxyConfig{Trusted: []string{"192.0.2.0/24"}}})
	app.Get("/", Text("served"))
	for _, test := range []struct {
		scheme string
		status int
		hsts   string
	}{{"https", 200, "max-age=60"}, {"http", 308, ""}, {"", 308, ""}} {
		w := Do(app, "GET", "/", "X-Forwarded-Proto", test.scheme)
		if got := w.Header().Get("Strict-Transport-Security"); w.Code != test.status || got != test.hsts {
			t.Errorf("%q: got %d with %q", test.scheme, w.Code, got)
		}
	}
}

// An explicit header overrides Config.TLS.HSTS.
func TestHSTSKeepsExistingHeader(t *testing.T) {
	app, _ := NewApp(dunlin.Config{TLS: dunlin.TLSConfig{HSTS: time.Minute}})
	app.Get("/", Constant(dunlin.Text("x").Header("Strict-Transport-Security", "max-age=1; includeSubDomains")))
	req := httptest.NewRequest("GET", "/", nil)
	req.TLS = new(tls.ConnectionState)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	if got := w.Header()["Strict-Transport-Security"]; len(got) != 1 || !strings.Contains(got[0], "includeSubDomains") {
		t.Errorf("got %q", got)
	}
}

func TestTLSDevelopment(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the folder for settings is moved by XDG_CONFIG_HOME")
	}
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(LogBuffer)
		config := dunlin.Config{
			Engine: engine, Addr: "127.0.0.1:0", TLS: dunlin.TLSConfig{Development: true, HSTS: time.Hour}, Logger: logs.Logger(slog.LevelWarn),
		}
		addrs := running(t, 1, config, func(app *dunlin.App) { app.Get("/proto", Proto) })
		authority := filepath.Join(dir, "dunlin", "localhost-ca.pem")
		WantLogged(t, logs, authority, "trust", "command=")
		text, err := os.ReadFile(authority)
		if err != nil {
			t.Fatal(err)
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(text)
		_, port, _ := net.SplitHostPort(addrs[0])
		c := Client(t, trusted, HTTP2)
		c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addrs[0])
		}
		for _, host := range []string{"127.0.0.1", "localhost", "app.localhost"} {
			resp, body := Get(t, c, "https://"+net.JoinHostPort(host, port)+"/proto")
			if body != "HTTP/2.0 TLS" || resp.Header.Get("Strict-Transport-Security") != "" {
				t.Errorf("%s: got %q, %v", host, body, resp.Header)
			}
		}
	})
}

// A testIssuer has one certificate and one challenge.
type testIssuer struct {
	cert    tls.Certificate
	asked   []string
	renewed chan context.Context
	err     error
}

func (i *testIssuer) Certificates(domains []string, _ *slog.Logger) (dunlin.TLSCertificates, error) {
	i.asked = append(i.asked, domains...)
	return i, i.err
}

func (i *testIssuer) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &i.cert, nil
}

func (i *testIssuer) Protocols() []string { return []string{"acme-tls/1"} }

func (i *testIssuer) Challenge(_, path string) (string, bool) {
	return "the answer", path == "/.well-known/acme-challenge/token"
}

func (i *testIssuer) Renew(ctx context.Context) {
	i.renewed <- ctx
	<-ctx.Done()
	i.renewed <- ctx
}

func TestTLSIssuer(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := NewCert(t)
		issuer := &testIssuer{cert: LoadConfig(t, certFile, keyFile).Certificates[0], renewed: make(chan context.Context, 2)}
		t.Cleanup(func() { // after the app has ended
			if ctx := Await(t, "the end of renewal", issuer.renewed); ctx.Err() == nil {
				t.Error("renewal was not told to end")
			}
		})
		config := dunlin.Config{
			Engine: engine, Addr: "127.0.0.1:0", TLS: dunlin.TLSConfig{
				Addr:    "127.0.0.1:0",
				HSTS:    time.Hour,
				Domains: []string{"example.com"},
				Issuer:  issuer,
			},
		}
		addrs := running(t, 2, config, func(app *dunlin.App) {
			app.Get("/proto", Proto)
			app.Get("/.well-known/acme-challenge/mine", Text("mine")).ClearText()
		})
		Await(t, "renewal", issuer.renewed)
		if len(issuer.asked) != 1 || issuer.asked[0] != "example.com" {
			t.Errorf("asked for %q", issuer.asked)
		}
		c := unredirected(Client(t, trusted, HTTP1))
		for path, want := range map[string]string{"token": "200 the answer", "mine": "200 mine"} {
			resp, body := Get(t, c, "http://"+addrs[0]+"/.well-known/acme-challenge/"+path)
			if got := strings.Fields(resp.Status)[0] + " " + body; got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
		for host, want := range map[string]int{"example.com": 308, addrs[0]: 400} { // a host with a certificate, and one without
			req, err := http.NewRequest("GET", "http://"+addrs[0]+"/.well-known/acme-challenge/other", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("another path at %s: got %s, want %d", host, resp.Status, want)
			}
		}
		if _, body := Get(t, c, "https://"+addrs[1]+"/proto"); body != "HTTP/1.1 TLS" {
			t.Errorf("by TLS: got %q", body)
		}
		// A connection for the ACME challenge completes its handshake only.
		conn, err := tls.Dial("tcp", addrs[1], &tls.Config{RootCAs: trusted, NextProtos: []string{"acme-tls/1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) || conn.ConnectionState().NegotiatedProtocol != "acme-tls/1" {
			t.Errorf("read %d, %v by %q", n, err, conn.ConnectionState().NegotiatedProtocol)
		}
	})
}

func TestTLSIssuerFails(t *testing.T) {
	app, _ := NewApp(dunlin.Config{TLS: dunlin.TLSConfig{Domains: []string{"example.com"}, Issuer: &testIssuer{err: errors.New("no disk")}}})
	for _, err := range []error{app.Run(t.Context()), app.ListenAndServeTLS("127.0.0.1:0", "", "")} {
		if err == nil || !strings.Contains(err.Error(), "Config.TLS.Domains: no disk") {
			t.Errorf("got %v", err)
		}
	}
}

// noIssuer issues no certificates. It is for apps that do not serve TLS.
type noIssuer struct{}

func (noIssuer) Certificates([]string, *slog.Logger) (dunlin.TLSCertificates, error) {
	return nil, errors.New("there are none")
}

// If the names of the certificates are known, a client is not redirected to any other host.
func TestSecureOnlyOfDomains(t *testing.T) {
	app := dunlin.New(dunlin.Config{TLS: dunlin.TLSConfig{HSTS: time.Hour, Domains: []string{"shop.example"}, Issuer: noIssuer{}}})
	app.Get("/", Text("served"))
	for host, want := range map[string]string{
		"shop.example": "308 https://shop.example/?a=b", "shop.example:80": "308 https://shop.example/?a=b",
		"evil.example": "400 ", "shop.example.evil.example": "400 ", "shop.example@evil.example": "400 ", "": "400 ",
	} {
		req := httptest.NewRequest("GET", "/?a=b", nil)
		req.Host = host
		req.Header.Set("X-Forwarded-Host", "evil.example")
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if got := fmt.Sprint(w.Code, " ", w.Header().Get("Location")); got != want {
			t.Errorf("Host %q: got %s, want %s", host, got, want)
		}
	}
}
