package acme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"testing"
	"time"
)

// certificate returns a certificate that became valid the time began ago, and expires after the time ends.
func certificate(t *testing.T, began, ends time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"},
		NotBefore: time.Now().Add(-began), NotAfter: time.Now().Add(ends),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := complete(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// A certificate that is immediately due for renewal, for example because the clock is wrong, is used. The next request to the
// authority does not follow immediately.
func TestCertificateImmediatelyDue(t *testing.T) {
	s, err := openStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := newManager(Config{}, []string{"example.com"}, s, slog.New(slog.DiscardHandler))
	n := m.names[0]
	for i := range 3 {
		began := time.Now()
		cert := certificate(t, 3*time.Hour, time.Hour)
		if err := m.got(n, cert); err == nil {
			t.Fatal("the certificate does not count as due")
		} else {
			m.failed(t.Context(), n, err)
		}
		if least := firstPause << i; n.due.Before(began.Add(least)) {
			t.Errorf("got next request after %v, want at least %v", n.due.Sub(began), least)
		}
		if n.cert.Load() != cert {
			t.Error("the certificate is not used")
		}
	}
	cert := certificate(t, time.Hour, 3*time.Hour)
	if err := m.got(n, cert); err != nil || n.failures != 0 || !n.due.Equal(renewal(cert)) {
		t.Errorf("certificate that is not due: got %v, %d failures, due %v", err, n.failures, n.due)
	}
}

// If a process fails to obtain a certificate, it uses the certificate that another process has obtained, and sends no further
// requests.
func TestCertificateOfAnotherProcess(t *testing.T) {
	folder := t.TempDir()
	s, err := openStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	config := Config{Directory: "https://acme.test/dir", Client: &http.Client{Transport: refused(func() { asked++ })}}
	m := newManager(config, []string{"example.com"}, s, slog.New(slog.DiscardHandler))
	n := m.names[0]
	m.renewDue(t.Context())
	if asked == 0 || n.failures != 1 {
		t.Fatalf("got %d requests and %d failures", asked, n.failures)
	}
	asked = 0
	other := &store{folder}
	for _, test := range []struct {
		began, ends time.Duration
		failures    int
	}{
		{3 * time.Hour, time.Hour, 1}, // also due for renewal
		{time.Hour, 9 * time.Hour, 0},
	} {
		cert := certificate(t, test.began, test.ends)
		if err := other.save(n.name, cert); err != nil {
			t.Fatal(err)
		}
		m.renewDue(t.Context())
		if have := n.cert.Load(); have == nil || !have.Leaf.Equal(cert.Leaf) {
			t.Fatal("the stored certificate is not used")
		}
		if asked != 0 || n.failures != test.failures || !n.due.After(time.Now()) {
			t.Errorf("got %d requests, %d failures, due %v", asked, n.failures, n.due)
		}
	}
	if cert := n.cert.Load(); !n.due.Equal(renewal(cert)) {
		t.Errorf("got due %v, want %v", n.due, renewal(cert))
	}
}

// refused calls itself for each request, which then fails.
type refused func()

func (r refused) RoundTrip(*http.Request) (*http.Response, error) {
	r()
	return nil, errors.New("the authority does not answer")
}
