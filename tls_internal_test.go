package dunlin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// A certificate from files never blocks a handshake, and the loop engine knows this. A function of the application may block.
func TestPromptCertificates(t *testing.T) {
	cert := tlstest.Server().Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	app := New(Config{TLS: TLSConfig{Config: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }}}})
	if own, err := app.tlsConfig("", ""); err != nil || own.Prompt {
		t.Errorf("own function: got prompt %v, error %v", own.Prompt, err)
	}
	files, err := app.tlsConfig(write("cert.pem", "CERTIFICATE", cert.Certificate[0]), write("key.pem", "PRIVATE KEY", key))
	if err != nil || !files.Prompt {
		t.Errorf("files: got prompt %v, error %v", files != nil && files.Prompt, err)
	}
}
