package suite

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

func TestTLS(t *testing.T) {
	for _, c := range []struct {
		protocol func(*http.Protocols)
		want     string
	}{
		{HTTP1, "HTTP/1.1 TLS"},
		{HTTP2, "HTTP/2.0 TLS"},
	} {
		OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
			addr, trusted, _ := StartTLS(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/proto", Proto) })
			if _, body := Get(t, Client(t, trusted, c.protocol), "https://"+addr+"/proto"); body != c.want {
				t.Errorf("got %q, want %q", body, c.want)
			}
		})
	}
}

func TestTLSMinimumVersion(t *testing.T) {
	addr, trusted, _ := StartTLS(t, dunlin.Config{}, func(*dunlin.App) {})
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

// A connection with a negotiated protocol of the app's settings that is not HTTP gets no HTTP response.
func TestTLSOtherProtocols(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		settings := func() *tls.Config { return &tls.Config{NextProtos: []string{"other", "http/1.0", "http/1.1"}} }
		for _, forClient := range []bool{false, true} {
			conf := dunlin.Config{Engine: engine, TLS: dunlin.TLSConfig{Config: settings()}}
			if forClient {
				conf.TLS.Config.NextProtos = nil
				conf.TLS.Config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					c := settings()
					c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
						cert, _ := tlstest.Certificate()
						return &cert, nil
					}
					return c, nil
				}
			}
			addr, _, _ := StartTLS(t, conf, func(app *dunlin.App) { app.Get("/proto", Proto) })
			for proto, want := range map[string]string{"other": "", "http/1.0": "HTTP/1.1 TLS", "http/1.1": "HTTP/1.1 TLS"} {
				conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{proto}})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if got := conn.ConnectionState().NegotiatedProtocol; got != proto {
					t.Fatalf("agreed to %q, want %q", got, proto)
				}
				_ = conn.SetDeadline(time.Now().Add(Patience))
				_, _ = io.WriteString(conn, "GET /proto HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				answer, err := io.ReadAll(conn)
				if errors.Is(err, os.ErrDeadlineExceeded) || want == "" && len(answer) > 0 || !strings.HasSuffix(string(answer), want) {
					t.Errorf("by %s: got %q, %v; want %q", proto, answer, err, want)
				}
			}
		}
	})
}

// One app serves TLS and clear text at the same time. HTTP/2 prohibits cipher suites that HTTP/1.1 permits (RFC 9113, section
// 9.2.2).
func TestHTTP2ProhibitsCipherSuites(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, trusted, _ := StartTLS(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			a.Get("/proto", Proto)
		})
		weak := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}
		conn, err := tls.Dial("tcp", addr, &tls.Config{
			RootCAs: trusted, MaxVersion: tls.VersionTLS12, CipherSuites: weak, NextProtos: []string{"h2"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(Patience))
		if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
			t.Fatalf("agreed to %q", got)
		}
		// The server reports this unasked, and may close the connection before all of this is written.
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		sent, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection is still open")
		}
		code := ""
		for len(sent) >= 9 {
			length := int(sent[0])<<16 | int(sent[1])<<8 | int(sent[2])
			if payload := sent[9:]; sent[3] == 7 && len(payload) >= 8 {
				code = fmt.Sprintf("GOAWAY %#x", payload[7])
			}
			sent = sent[min(9+length, len(sent)):]
		}
		if code != "GOAWAY 0xc" {
			t.Errorf("the client got %q (%v)", code, err)
		}
		if n := app.Stats().Shed["h2-security"]; engine == dunlin.EngineLoop && n != 1 {
			t.Errorf("%d were counted", n)
		}
		for _, c := range []struct {
			suites   []uint16
			protocol func(*http.Protocols)
			want     string
		}{
			{weak, HTTP1, "HTTP/1.1 TLS"},
			{[]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, HTTP2, "HTTP/2.0 TLS"},
			{[]uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}, HTTP2, "HTTP/2.0 TLS"},
		} {
			client := Client(t, trusted, c.protocol)
			by := client.Transport.(*http.Transport).TLSClientConfig
			by.MaxVersion, by.CipherSuites = tls.VersionTLS12, c.suites
			if _, body := Get(t, client, "https://"+addr+"/proto"); body != c.want {
				t.Errorf("got %q, want %q", body, c.want)
			}
		}
	})
}

// An HTTP/2 client that is evicted after a part of its first record gets an HTTP/2 response.
func TestHTTP2RefusedBeforePreface(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("net/http keeps a record where no budget knows it")
	}
	var app *dunlin.App
	addr, trusted, _ := StartTLS(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) { app = a })
	var conns []*tls.Conn
	begin := func() {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(Patience))
		half := &halfConn{Conn: conn}
		secure := tls.Client(half, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, DynamicRecordSizingDisabled: true})
		if err := secure.Handshake(); err != nil {
			t.Fatal(err)
		}
		half.now = true
		_, _ = secure.Write(make([]byte, 16<<10)) // it may be refused
		conns = append(conns, secure)
	}
	Soon(t, "some are refused", func() bool {
		begin()
		return app.Stats().Shed["largest-holder"] >= 5
	})
	refused := 0
	for _, conn := range conns {
		_ = conn.SetDeadline(time.Now().Add(Patience))
		_ = conn.NetConn().(*halfConn).CloseWrite()
		sent, _ := io.ReadAll(conn)
		var kinds []byte
		for b := sent; len(b) >= 9; b = b[min(9+(int(b[0])<<16|int(b[1])<<8|int(b[2])), len(b)):] {
			kinds = append(kinds, b[3])
		}
		const settings, goAway = 4, 7
		switch {
		case len(sent) == 0:
		case len(kinds) < 2 || kinds[0] != settings || kinds[len(kinds)-1] != goAway:
			t.Fatalf("the client got %q", sent)
		default:
			refused++
		}
	}
	if refused == 0 {
		t.Error("no client got GOAWAY")
	}
}

// A halfConn sends only three quarters of the written bytes if the test requests it.
type halfConn struct {
	net.Conn
	now bool
}

func (c *halfConn) Write(p []byte) (int, error) {
	if c.now {
		_, err := c.Conn.Write(p[:len(p)*3/4])
		return len(p), err
	}
	return c.Conn.Write(p)
}

func (c *halfConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func TestTLSBesideClearText(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := NewCert(t)
		type listening struct {
			addr   string
			engine dunlin.Engine
		}
		ready := make(chan listening, 1)
		app, _ := NewApp(dunlin.Config{Engine: engine, Ready: func(a net.Addr, e dunlin.Engine) { ready <- listening{a.String(), e} }})
		app.Get("/proto", Proto)
		served := [2]chan error{make(chan error, 1), make(chan error, 1)}
		ln := Listen(t)
		go func() { served[0] <- app.Serve(ln) }()
		clear := <-ready
		go func() { served[1] <- app.ListenAndServeTLS("127.0.0.1:0", certFile, keyFile) }()
		secure := <-ready
		if clear.engine != engine || secure.engine != engine {
			t.Errorf("clear text by %v and TLS by %v, want both by %v", clear.engine, secure.engine, engine)
		}
		c := Client(t, trusted, HTTP1, HTTP2)
		if _, body := Get(t, c, "http://"+clear.addr+"/proto"); body != "HTTP/1.1 clear" {
			t.Errorf("got %q", body)
		}
		if _, body := Get(t, c, "https://"+secure.addr+"/proto"); body != "HTTP/2.0 TLS" {
			t.Errorf("got %q", body)
		}
		c.CloseIdleConnections() // an idle HTTP/2 connection would delay the drain by a second
		Stop(t, app, served[0], served[1])
	})
}

func TestH2C(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge, Engine: engine}, func(app *dunlin.App) { app.Get("/proto", Proto) })
		if _, body := Get(t, Client(t, nil, H2C), "http://"+addr+"/proto"); body != "HTTP/2.0 clear" {
			t.Errorf("got %q", body)
		}
		if _, body := Get(t, Client(t, nil, HTTP1), "http://"+addr+"/proto"); body != "HTTP/1.1 clear" {
			t.Errorf("got %q", body)
		}
	})
}

func TestH2CIsOffByDefault(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/proto", Proto) })
		resp, err := Client(t, nil, H2C).Get("http://" + addr + "/proto")
		if err == nil {
			resp.Body.Close()
			t.Errorf("got %s, want an error", resp.Proto)
		}
	})
}

// Invalid data on a TLS port does not flood the log.
func TestTLSHandshakeErrorsAreQuiet(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for _, c := range []struct {
			level slog.Level
			lines int
		}{{slog.LevelDebug, 1}, {slog.LevelInfo, 0}} {
			logs := new(LogBuffer)
			addr, _, _ := StartTLS(t, dunlin.Config{Engine: engine, Logger: logs.Logger(c.level)}, func(*dunlin.App) {})
			conn := Dial(t, addr)
			if _, err := io.WriteString(conn, "\x16\x03\x01\x00\x04this is no TLS at all\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			_, _ = bufio.NewReader(conn).ReadString(0) // to the end of the connection
			count := func() int { return strings.Count(logs.String(), "TLS handshake") }
			Soon(t, "the handshake is logged", func() bool { return count() >= c.lines })
			if n := count(); n != c.lines {
				t.Errorf("level %v: got %d lines about the handshake, want %d:\n%s", c.level, n, c.lines, logs)
			}
		}
	})
}

func TestTLSErrors(t *testing.T) {
	certFile, keyFile, _ := NewCert(t)
	app, _ := NewApp(dunlin.Config{})
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
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} { // they would use clear text
		app, _ := NewApp(dunlin.Config{Engine: engine})
		if err := app.ServeTLS(Listen(t), nil); err == nil || !strings.Contains(err.Error(), "no certificate") {
			t.Errorf("%v: ServeTLS without settings: %v", engine, err)
		}
	}
}

func TestTLSSettings(t *testing.T) {
	for _, c := range []struct {
		config dunlin.Config
		want   string
	}{
		{dunlin.Config{TLS: dunlin.TLSConfig{Cert: "cert.pem"}}, "Config.TLS.Cert is \"cert.pem\" and Key \"\""},
		{dunlin.Config{TLS: dunlin.TLSConfig{Key: "key.pem"}}, "Config.TLS.Cert is \"\" and Key"},
		{dunlin.Config{TLS: dunlin.TLSConfig{Addr: ":443"}}, "Config.TLS.Addr"},
		{dunlin.Config{TLS: dunlin.TLSConfig{Development: true, Cert: "cert.pem", Key: "key.pem"}}, "Development"},
		{dunlin.Config{TLS: dunlin.TLSConfig{Domains: []string{"example.com"}}}, "github.com/dunlinhttp/dunlin/acme"},
		{dunlin.Config{TLS: dunlin.TLSConfig{Issuer: new(testIssuer)}}, "needs Domains"},
		{dunlin.Config{TLS: dunlin.TLSConfig{Issuer: new(testIssuer), Domains: []string{"example.com"}, Development: true}}, "Development"},
		{dunlin.Config{TLS: dunlin.TLSConfig{HSTS: -time.Second}}, "HSTS"},
		{dunlin.Config{TLS: dunlin.TLSConfig{HSTS: time.Millisecond}}, "HSTS"},
		{dunlin.Config{Process: dunlin.ProcessConfig{DrainGrace: -1}}, "DrainGrace"},
	} {
		WantContains(t, "the panic", PanicText(func() { dunlin.New(c.config) }), "Config.", c.want)
	}
}
