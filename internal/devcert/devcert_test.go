package devcert_test

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/devcert"
)

func load(t *testing.T, dir string) *devcert.Cert {
	t.Helper()
	c, err := devcert.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCertificate(t *testing.T) {
	c := load(t, filepath.Join(t.TempDir(), "a", "b"))
	text, err := os.ReadFile(c.Authority)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("KEY")) {
		t.Errorf("the file to be trusted contains a key")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("got no certificate in %s", text)
	}
	for name, ok := range map[string]bool{
		"localhost": true, "app.localhost": true, "127.0.0.1": true, "::1": true,
		"example.com": false, "localhost.example.com": false, "192.0.2.1": false,
	} {
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); (err == nil) != ok {
			t.Errorf("name %s: %v", name, err)
		}
	}
	if c.Trusted() {
		t.Error("the certificate is trusted before the authority was added")
	}
}

// The authority could not speak for other sites, had it its key still.
func TestAuthorityIsConstrained(t *testing.T) {
	c := load(t, t.TempDir())
	authority, err := x509.ParseCertificate(c.Certificate.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	if !authority.PermittedDNSDomainsCritical || len(authority.PermittedDNSDomains) != 1 || authority.PermittedDNSDomains[0] != "localhost" ||
		len(authority.PermittedIPRanges) != 2 || !authority.MaxPathLenZero {
		t.Errorf("got permitted names %q and addresses %v", authority.PermittedDNSDomains, authority.PermittedIPRanges)
	}
}

func TestCertificateIsReused(t *testing.T) {
	dir := t.TempDir()
	var all [8]*devcert.Cert
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			var err error
			if all[i], err = devcert.Load(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, c := range append(all[:], load(t, dir)) {
		if !c.Leaf.Equal(all[0].Leaf) {
			t.Fatal("got different certificates")
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("got %d files (error %v), want two", len(files), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "localhost.pem")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, error %v, want a key that only its owner can read", info.Mode(), err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "localhost.pem")
	if err := os.WriteFile(name, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := devcert.Load(dir); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("got %v", err)
	}
	if _, err := devcert.Load(name); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("got %v", err)
	}
}

func TestTrustCommands(t *testing.T) {
	c := &devcert.Cert{Authority: "/home/a b/ca.pem"}
	for goos, want := range map[string]string{
		"windows": `certutil -addstore -user Root "/home/a b/ca.pem"`,
		"darwin":  "security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db '/home/a b/ca.pem'",
		"plan9":   "curl --cacert '/home/a b/ca.pem'",
	} {
		if got := c.TrustCommand(goos); got != want {
			t.Errorf("%s: got %s", goos, got)
		}
	}
	if got := c.TrustCommand("linux"); !strings.Contains(got, "'/home/a b/ca.pem'") {
		t.Error(got)
	}
	if got := c.BrowserCommand("linux"); !strings.HasSuffix(got, "-i '/home/a b/ca.pem'") || c.BrowserCommand("darwin") != "" {
		t.Error(got)
	}
}
