package certfile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pair is a certificate and its key as PEM.
type pair struct{ cert, key []byte }

func newPair(t *testing.T, serial int64) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(serial)}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// TestReload changes two files step by step. synctest provides the clock, so waiting takes no time.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		// replace puts new content in place as renewal programs do.
		replace := func(name string, content []byte) {
			t.Helper()
			next := name + ".new"
			if err := os.WriteFile(next, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(next, name); err != nil {
				t.Fatal(err)
			}
		}
		first, second, third := newPair(t, 1), newPair(t, 2), newPair(t, 3)
		replace(certFile, first.cert)
		replace(keyFile, first.key)
		var logs bytes.Buffer
		files, err := Load(certFile, keyFile, slog.New(slog.NewTextHandler(&logs, nil)))
		if err != nil {
			t.Fatal(err)
		}
		steps := []struct {
			name     string
			change   func()
			wait     time.Duration
			serial   int64
			warnings int // total number of warnings
		}{
			{"unchanged", func() {}, time.Hour, 1, 0},
			{"not checked within a second", func() { replace(certFile, second.cert); replace(keyFile, second.key) }, recheck / 2, 1, 0},
			{"changed", func() {}, recheck / 2, 2, 0},
			{"the certificate before its key", func() { replace(certFile, third.cert) }, recheck, 2, 1},
			{"still", func() {}, recheck, 2, 1},
			{"the key too", func() { replace(keyFile, third.key) }, recheck, 3, 1},
			{"gone", func() { _ = os.Remove(keyFile) }, recheck, 3, 2},
			{"still missing", func() {}, recheck, 3, 2},
			{"back", func() { replace(keyFile, third.key) }, recheck, 3, 2},
			{"back to the first", func() { replace(certFile, first.cert); replace(keyFile, first.key) }, recheck, 1, 2},
		}
		for _, s := range steps {
			s.change()
			<-time.After(s.wait)
			cert, err := files.Certificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			if serial := cert.Leaf.SerialNumber.Int64(); serial != s.serial {
				t.Errorf("%s: got certificate %d, want %d", s.name, serial, s.serial)
			}
			if n := strings.Count(logs.String(), "level=WARN"); n != s.warnings {
				t.Errorf("%s: got got %d warnings, want %d:\n%s", s.name, n, s.warnings, logs.String())
			}
		}
	})
}
