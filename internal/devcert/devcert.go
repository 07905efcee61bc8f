// Package devcert creates a TLS certificate for development. The certificate is valid for the names of this machine.
// It is stored in a folder, so that a developer has to trust it only once.
//
// An authority issues the certificate, and the key of the authority is deleted at once. Therefore trust in the
// authority is trust in this one certificate. If the key were stored, everybody who can read the file could
// impersonate any site.
package devcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Names are the names for which the certificate is valid, in addition to 127.0.0.1 and ::1.
var Names = []string{"localhost", "*.localhost"}

const (
	lifetime = 397 * 24 * time.Hour // the maximum that browsers accept
	renewal  = 30 * 24 * time.Hour  // a new certificate is created when less than this time is left
)

// Names of files in the folder.
const (
	pairFile      = "localhost.pem"    // key, certificate and authority, readable only by the server
	authorityFile = "localhost-ca.pem" // the authority to trust
)

// A Cert is a certificate and the file of the authority that issued it.
type Cert struct {
	tls.Certificate
	Authority string // name of the PEM file of the authority
}

// OfUser returns the certificate of the current user. If this machine does not trust the certificate, OfUser logs the
// command that makes the machine trust it.
func OfUser(log *slog.Logger) (tls.Certificate, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("the development certificate is stored in the user's folder for settings: %w", err)
	}
	c, err := Load(filepath.Join(dir, "dunlin"))
	if err != nil {
		return tls.Certificate{}, err
	}
	if !c.Trusted() {
		log.Warn("TLS with a certificate for development: to have this machine trust it, run", "command", c.TrustCommand(runtime.GOOS))
		if command := c.BrowserCommand(runtime.GOOS); command != "" {
			log.Warn("to have Chromium trust it, run", "command", command)
		}
	}
	return c.Certificate, nil
}

// Load returns the certificate in the folder dir. It creates a certificate if the folder has none, or if the
// certificate expires within 30 days. Processes that call Load at the same time get the same certificate.
func Load(dir string) (*Cert, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder for the development certificate: %w", err)
	}
	name := filepath.Join(dir, pairFile)
	for range 3 { // another process may remove the file meanwhile
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			if text, err = create(time.Now()); err != nil {
				return nil, fmt.Errorf("make a development certificate: %w", err)
			}
			err = writeAtomically(name, text, claim)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("development certificate: %w", err)
		}
		cert, authority, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("development certificate %s: %w (remove it to have a new one)", name, err)
		}
		if time.Until(cert.Leaf.NotAfter) < renewal {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("old development certificate: %w", err)
			}
			continue
		}
		c := &Cert{cert, filepath.Join(dir, authorityFile)}
		if have, err := os.ReadFile(c.Authority); err != nil || !bytes.Equal(have, authority) {
			if err := writeAtomically(c.Authority, authority, os.Rename); err != nil {
				return nil, fmt.Errorf("development certificate: %w", err)
			}
		}
		return c, nil
	}
	return nil, fmt.Errorf("development certificate %s: other processes keep changing it", name)
}

// writeAtomically writes a file atomically: it writes a temporary file, and put then gives this file its name.
func writeAtomically(name string, text []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text) // CreateTemp makes the file readable only for its owner
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return put(f.Name(), name)
}

// claim gives the file from the name to. It returns an error if to exists, provided that the file system supports
// links.
func claim(from, to string) error {
	err := os.Link(from, to)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(from, to)
	}
	return err
}

// parse parses the text that create has returned.
func parse(text []byte) (cert tls.Certificate, authority []byte, err error) {
	cert, err = tls.X509KeyPair(text, text)
	if err != nil {
		return cert, nil, err
	}
	if len(cert.Certificate) != 2 {
		return cert, nil, fmt.Errorf("the file has %d certificates instead of those of the server and its authority", len(cert.Certificate))
	}
	if cert.Leaf == nil { // whether Leaf is set depends on GODEBUG
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return cert, nil, err
		}
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}), nil
}

// create creates an authority that may issue certificates only for Names, and a certificate that it has signed.
func create(now time.Time) ([]byte, error) {
	issuerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	issuer := &x509.Certificate{
		Subject:                     pkix.Name{Organization: []string{"Dunlin development"}, CommonName: strings.TrimSpace("Dunlin development " + host)},
		NotBefore:                   now.Add(-time.Hour),
		NotAfter:                    now.Add(lifetime),
		IsCA:                        true,
		MaxPathLenZero:              true,
		BasicConstraintsValid:       true,
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{"localhost"},
		PermittedIPRanges: []*net.IPNet{
			{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
			{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
		},
	}
	leaf := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"Dunlin development"}, CommonName: "localhost"},
		NotBefore:             issuer.NotBefore,
		NotAfter:              issuer.NotAfter,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              Names,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback},
	}
	for _, c := range []*x509.Certificate{issuer, leaf} {
		if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
			return nil, err
		}
	}
	issued, err := x509.CreateCertificate(rand.Reader, issuer, issuer, issuerKey.Public(), issuerKey)
	if err != nil {
		return nil, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, leaf, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, b := range []pem.Block{{Type: "PRIVATE KEY", Bytes: private}, {Type: "CERTIFICATE", Bytes: cert}, {Type: "CERTIFICATE", Bytes: issued}} {
		if err := pem.Encode(&out, &b); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// Trusted reports whether Go's verifier trusts the certificate on this machine. A browser may use another list of
// authorities.
func (c *Cert) Trusted() bool {
	_, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: Names[0]})
	return err == nil
}

// TrustCommand returns the shell command that makes a system trust the certificate. goos is the system, in the form of
// runtime.GOOS.
func (c *Cert) TrustCommand(goos string) string {
	switch goos {
	case "windows":
		return `certutil -addstore -user Root "` + c.Authority + `"`
	case "darwin":
		return "security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db " + quote(c.Authority)
	case "linux":
		for _, s := range stores {
			if info, err := os.Stat(s.folder); err == nil && info.IsDir() {
				return "sudo cp " + quote(c.Authority) + " " + s.folder + "/dunlin-development.crt && sudo " + s.update
			}
		}
	}
	return "curl --cacert " + quote(c.Authority) // this makes only one program trust the certificate
}

// stores lists the folders in which Linux distributions keep trusted authorities.
var stores = []struct{ folder, update string }{
	{"/usr/local/share/ca-certificates", "update-ca-certificates"},   // Debian, Ubuntu, Alpine
	{"/etc/pki/ca-trust/source/anchors", "update-ca-trust"},          // Fedora, RHEL
	{"/etc/ca-certificates/trust-source/anchors", "update-ca-trust"}, // Arch
	{"/usr/share/pki/trust/anchors", "update-ca-certificates"},       // openSUSE
}

// BrowserCommand returns the shell command for browsers that have their own list of authorities, such as Chromium on
// Linux. It returns "" if browsers use the list of the system.
func (c *Cert) BrowserCommand(goos string) string {
	if goos != "linux" {
		return ""
	}
	return `certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n dunlin-development -i ` + quote(c.Authority)
}

// quote quotes s for a shell, if necessary.
func quote(s string) string {
	if strings.ContainsAny(s, " '\"\\$`&;()<>|*?!#~\t\n") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
