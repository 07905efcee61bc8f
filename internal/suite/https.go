package suite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// NewCert makes a certificate for 127.0.0.1 in two files, and the pool that
// trusts it.
func NewCert(t *testing.T) (certFile, keyFile string, trusted *x509.CertPool) {
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

// StartTLS serves app over TLS until the test ends.
func StartTLS(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (addr string, trusted *x509.CertPool, logs *LogBuffer) {
	t.Helper()
	certFile, keyFile, trusted := NewCert(t)
	ready := make(chan net.Addr, 1)
	config.Ready = func(addr net.Addr, _ dunlin.Engine) { ready <- addr }
	app, logs := NewApp(config)
	register(app)
	served := make(chan error, 1)
	go func() { served <- app.ListenAndServeTLS("127.0.0.1:0", certFile, keyFile) }()
	select {
	case a := <-ready:
		addr = a.String()
	case err := <-served:
		t.Fatalf("ListenAndServeTLS returned at once: %v", err)
	}
	t.Cleanup(func() { Stop(t, app, served) })
	return addr, trusted, logs
}

// Client returns a client that uses only the given protocols.
func Client(t *testing.T, trusted *x509.CertPool, protocols ...func(*http.Protocols)) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, Protocols: new(http.Protocols)}
	for _, set := range protocols {
		set(transport.Protocols)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: Patience}
}

func HTTP1(p *http.Protocols) { p.SetHTTP1(true) }
func HTTP2(p *http.Protocols) { p.SetHTTP2(true) }
func H2C(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

// Get returns the answer to GET url and its body.
func Get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return resp, Body(t, resp)
}

// Body returns the body of an answer, read to its end.
func Body(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Proto answers with the protocol of the request.
func Proto(r *dunlin.Request) dunlin.Response {
	secure := "clear"
	if r.Std().TLS != nil {
		secure = "TLS"
	}
	return dunlin.Text(r.Std().Proto + " " + secure)
}

// LoadConfig returns TLS settings with a certificate.
func LoadConfig(t *testing.T, certFile, keyFile string) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}
