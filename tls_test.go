package dunlin_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// newCert makes a certificate for 127.0.0.1 in two files, and the pool that
// trusts it.
func newCert(t *testing.T) (certFile, keyFile string, trusted *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "dunlin"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, certFile, "CERTIFICATE", cert)
	writePEM(t, keyFile, "PRIVATE KEY", private)
	trusted = x509.NewCertPool()
	text, err := os.ReadFile(certFile)
	if err != nil || !trusted.AppendCertsFromPEM(text) {
		t.Fatalf("the certificate cannot be trusted (%v)", err)
	}
	return certFile, keyFile, trusted
}

func writePEM(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startTLS serves app by TLS until the test ends.
func startTLS(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (addr string, trusted *x509.CertPool, logs *logBuffer) {
	t.Helper()
	certFile, keyFile, trusted := newCert(t)
	ready := make(chan net.Addr, 1)
	config.Ready = func(addr net.Addr, _ dunlin.Engine) { ready <- addr }
	app, logs := newApp(config)
	register(app)
	served := make(chan error, 1)
	go func() { served <- app.ListenAndServeTLS("127.0.0.1:0", certFile, keyFile) }()
	select {
	case a := <-ready:
		addr = a.String()
	case err := <-served:
		t.Fatalf("ListenAndServeTLS returned at once: %v", err)
	}
	t.Cleanup(func() { stop(t, app, served) })
	return addr, trusted, logs
}

// stop shuts app down and waits for what serves it.
func stop(t *testing.T, app *dunlin.App, served ...<-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := app.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	for _, s := range served {
		if err := <-s; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// client returns a client that speaks the given protocols only.
func client(t *testing.T, trusted *x509.CertPool, protocols ...func(*http.Protocols)) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, Protocols: new(http.Protocols)}
	for _, set := range protocols {
		set(transport.Protocols)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func http2(p *http.Protocols) { p.SetHTTP2(true) }
func h2c(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

// get returns the answer to GET url and its body.
func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// proto answers with the protocol the request came by.
func proto(r *dunlin.Request) dunlin.Response {
	secure := "clear"
	if r.Std().TLS != nil {
		secure = "TLS"
	}
	return dunlin.Text(r.Std().Proto + " " + secure)
}

func TestTLS(t *testing.T) {
	for _, c := range []struct {
		protocol func(*http.Protocols)
		want     string
	}{
		{http1, "HTTP/1.1 TLS"},
		{http2, "HTTP/2.0 TLS"},
	} {
		onEngines(t, func(t *testing.T, engine dunlin.Engine) {
			addr, trusted, _ := startTLS(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/proto", proto) })
			if _, body := get(t, client(t, trusted, c.protocol), "https://"+addr+"/proto"); body != c.want {
				t.Errorf("got %q, want %q", body, c.want)
			}
		})
	}
}

func TestTLSMinimumVersion(t *testing.T) {
	addr, trusted, _ := startTLS(t, dunlin.Config{}, func(*dunlin.App) {})
	for _, c := range []struct {
		version uint16
		ok      bool
	}{{tls.VersionTLS11, false}, {tls.VersionTLS12, true}, {tls.VersionTLS13, true}} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: trusted, MinVersion: c.version, MaxVersion: c.version})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", tls.VersionName(c.version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// One app at the same time by TLS and in clear text.
func TestTLSBesideClearText(t *testing.T) {
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := newCert(t)
		type listening struct {
			addr   string
			engine dunlin.Engine
		}
		ready := make(chan listening, 1)
		app, _ := newApp(dunlin.Config{Engine: engine, Ready: func(a net.Addr, e dunlin.Engine) { ready <- listening{a.String(), e} }})
		app.Get("/proto", proto)
		served := [2]chan error{make(chan error, 1), make(chan error, 1)}
		ln := listen(t)
		go func() { served[0] <- app.Serve(ln) }()
		clear := <-ready
		go func() { served[1] <- app.ListenAndServeTLS("127.0.0.1:0", certFile, keyFile) }()
		secure := <-ready
		if clear.engine != engine || secure.engine != engine {
			t.Errorf("clear text by %v and TLS by %v, want both by %v", clear.engine, secure.engine, engine)
		}
		c := client(t, trusted, http1, http2)
		if _, body := get(t, c, "http://"+clear.addr+"/proto"); body != "HTTP/1.1 clear" {
			t.Errorf("got %q", body)
		}
		if _, body := get(t, c, "https://"+secure.addr+"/proto"); body != "HTTP/2.0 TLS" {
			t.Errorf("got %q", body)
		}
		c.CloseIdleConnections() // HTTP/2 would wait a second for it
		stop(t, app, served[0], served[1])
	})
}

func TestH2C(t *testing.T) {
	addr, _ := start(t, dunlin.Config{H2C: true}, func(app *dunlin.App) { app.Get("/proto", proto) })
	if _, body := get(t, client(t, nil, h2c), "http://"+addr+"/proto"); body != "HTTP/2.0 clear" {
		t.Errorf("got %q", body)
	}
	if _, body := get(t, client(t, nil, http1), "http://"+addr+"/proto"); body != "HTTP/1.1 clear" {
		t.Errorf("got %q", body)
	}
}

func TestH2CIsOffByDefault(t *testing.T) {
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/proto", proto) })
		resp, err := client(t, nil, h2c).Get("http://" + addr + "/proto")
		if err == nil {
			resp.Body.Close()
			t.Errorf("got %s, want an error", resp.Proto)
		}
	})
}

// What strangers send to a TLS port must not fill the log.
func TestTLSHandshakeErrorsAreQuiet(t *testing.T) {
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for _, c := range []struct {
			level slog.Level
			lines int
		}{{slog.LevelDebug, 1}, {slog.LevelInfo, 0}} {
			logs := new(logBuffer)
			addr, _, _ := startTLS(t, dunlin.Config{Engine: engine, Logger: logs.logger(c.level)}, func(*dunlin.App) {})
			conn := dial(t, addr)
			if _, err := io.WriteString(conn, "\x16\x03\x01\x00\x04this is no TLS at all\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			_, _ = bufio.NewReader(conn).ReadString(0) // to the end of the connection
			count := func() int { return strings.Count(logs.String(), "TLS handshake") }
			soon(t, "the handshake is logged", func() bool { return count() >= c.lines })
			if n := count(); n != c.lines {
				t.Errorf("level %v: %d lines about the handshake, want %d:\n%s", c.level, n, c.lines, logs)
			}
		}
	})
}

func TestTLSErrors(t *testing.T) {
	certFile, keyFile, _ := newCert(t)
	app, _ := newApp(dunlin.Config{})
	for _, c := range []struct{ cert, key, want string }{
		{"", "", "no certificate"},
		{"missing.pem", keyFile, "missing.pem"},
		{certFile, "missing.pem", "missing.pem"},
		{keyFile, certFile, "load certificate"},
	} {
		err := app.ListenAndServeTLS("127.0.0.1:0", c.cert, c.key)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("certificate %q, key %q: error %v, want one with %q", c.cert, c.key, err, c.want)
		}
	}
}

func TestTLSSettings(t *testing.T) {
	for _, c := range []struct {
		config dunlin.Config
		want   string
	}{
		{dunlin.Config{TLSCert: "cert.pem"}, "TLSKey"},
		{dunlin.Config{TLSKey: "key.pem"}, "TLSCert"},
		{dunlin.Config{TLSAddr: ":443"}, "TLSAddr"},
		{dunlin.Config{TLSDevelopment: true, TLSCert: "cert.pem", TLSKey: "key.pem"}, "TLSDevelopment"},
		{dunlin.Config{TLSDomains: []string{"example.com"}}, "github.com/dunlinhttp/dunlin/acme"},
		{dunlin.Config{TLSIssuer: new(testIssuer)}, "TLSDomains"},
		{dunlin.Config{TLSIssuer: new(testIssuer), TLSDomains: []string{"example.com"}, TLSDevelopment: true}, "TLSDevelopment"},
		{dunlin.Config{HSTS: -time.Second}, "HSTS"},
		{dunlin.Config{HSTS: time.Millisecond}, "HSTS"},
		{dunlin.Config{H2C: true, Engine: dunlin.EngineLoop}, "H2C"},
		{dunlin.Config{DrainGrace: -1}, "DrainGrace"},
	} {
		wantContains(t, "the panic", panicText(func() { dunlin.New(c.config) }), "Config.", c.want)
	}
}

// loadConfig returns TLS settings with a certificate.
func loadConfig(t *testing.T, certFile, keyFile string) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}
