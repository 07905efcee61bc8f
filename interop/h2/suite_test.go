package h2_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A variant is a way to serve HTTP/2.
type variant struct {
	name   string
	engine dunlin.Engine
	secure bool
}

var variants = []variant{
	{"std", dunlin.EngineStd, true},
	{"std h2c", dunlin.EngineStd, false},
	{"loop", dunlin.EngineLoop, true},
	{"loop h2c", dunlin.EngineLoop, false},
}

// A server is an app that is served.
type server struct {
	*dunlin.App
	variant
	addr    string
	trusted *x509.CertPool
	stop    func() // Shutdown, and waits for Serve; may be called again
}

// url returns the URL of a path.
func (s *server) url(path string) string {
	if s.secure {
		return "https://" + s.addr + path
	}
	return "http://" + s.addr + path
}

// onEach runs f with an app served in each way.
func onEach(t *testing.T, config dunlin.Config, register func(*dunlin.App), f func(*testing.T, *server)) {
	t.Helper()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { f(t, serve(t, v, config, register)) })
	}
}

// serve serves an app until the test ends.
func serve(t testing.TB, v variant, config dunlin.Config, register func(*dunlin.App)) *server {
	t.Helper()
	if v.engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	config.Engine = v.engine
	if !v.secure {
		config.H2C = dunlin.H2CPriorKnowledge
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	ready := make(chan struct{})
	config.Ready = func(net.Addr, dunlin.Engine) { close(ready) }
	s := &server{App: dunlin.New(config), variant: v}
	register(s.App)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	served := make(chan error, 1)
	if v.secure {
		cert := certificate()
		s.trusted = x509.NewCertPool()
		s.trusted.AddCert(cert.Leaf)
		go func() { served <- s.ServeTLS(ln, &tls.Config{Certificates: []tls.Certificate{cert}}) }()
	} else {
		go func() { served <- s.Serve(ln) }()
	}
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// certificate makes one for 127.0.0.1.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dunlin"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

// await receives from c.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: did not arrive", what)
	}
	return v
}

// eventually waits until ready holds, for effects in the server that no client sees.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}
