package acme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"testing"
	"time"
)

// certificate returns one that began so long ago, and ends in so long.
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

// A certificate that is to be renewed as soon as it is got, since the clock is wrong, say, is used, and the authority
// not asked again at once.
func TestCertificateThatIsDueAtOnce(t *testing.T) {
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
			t.Fatal("it is taken as one that lasts")
		} else {
			m.failed(t.Context(), n, err)
		}
		if least := firstPause << i; n.due.Before(began.Add(least)) {
			t.Errorf("asked again after %v, want %v at least", n.due.Sub(began), least)
		}
		if n.cert.Load() != cert {
			t.Error("it is not used")
		}
	}
	cert := certificate(t, time.Hour, 3*time.Hour)
	if err := m.got(n, cert); err != nil || n.failures != 0 || !n.due.Equal(renewal(cert)) {
		t.Errorf("one that lasts: %v, %d failures, due %v", err, n.failures, n.due)
	}
}
