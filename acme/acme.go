// Package acme obtains TLS certificates for an app of Dunlin from an authority that supports ACME
// (RFC 8555), such as Let's Encrypt, and renews them while the app serves:
//
//	app := dunlin.New(dunlin.Config{
//		Addr: ":80", TLS: dunlin.TLSConfig{
//			Addr: ":443", HSTS: time.Hour,
//			Domains: []string{"example.com", "www.example.com"},
//			Issuer:  acme.New(acme.Config{Email: "admin@example.com", AcceptTerms: true}),
//		},
//	})
//	err := app.Run(ctx)
//
// The authority must be able to connect to the app under these names, on port 443 (TLS-ALPN-01, RFC
// 8737) or port 80 (HTTP-01). Each name has its own certificate. Certificates and their keys are stored
// in a folder and loaded at the next start.
package acme

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/acme"

	"github.com/dunlinhttp/dunlin"
)

// LetsEncrypt and LetsEncryptStaging are the directory URLs of Let's Encrypt. The staging environment
// is for tests: it has high rate limits, and clients do not trust its certificates.
const (
	LetsEncrypt        = acme.LetsEncryptURL
	LetsEncryptStaging = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// These are the challenges by which the app can prove control of a name.
const (
	TLSALPN01 = "tls-alpn-01" // on port 443
	HTTP01    = "http-01"     // on port 80, in clear text
)

// Config holds the settings of an Issuer. AcceptTerms must be set. Any other zero field selects its
// documented default.
type Config struct {
	// AcceptTerms declares that you have read the authority's terms of service and agree to them.
	// Without it, Certificates fails.
	AcceptTerms bool

	// Email is the contact address for the authority. Default: none.
	Email string

	// Folder is the folder with the account's key and the certificates, in a subfolder for each
	// authority. Only the owner can read the files. Only one process should obtain certificates at a
	// time; other processes may read them. Default: $STATE_DIRECTORY/acme if systemd has set that
	// variable, else dunlin/acme in [os.UserConfigDir].
	Folder string

	// Directory is the URL of the authority's directory. Default: [LetsEncrypt].
	Directory string

	// ExternalAccount is your account with the authority, for authorities that require one.
	// Default: none.
	ExternalAccount *ExternalAccount

	// Challenges are the challenges to try, in order. Default: TLSALPN01, HTTP01.
	Challenges []string

	// Client sends the requests to the authority. Default: [http.DefaultClient].
	Client *http.Client
}

// An ExternalAccount holds the credentials that an authority gives to its customers (RFC 8555,
// section 7.3.4).
type ExternalAccount struct {
	KeyID string
	Key   []byte // the decoded key; authorities show it in base64url
}

// An Issuer obtains certificates by ACME. It is a [dunlin.TLSIssuer].
type Issuer struct{ config Config }

// New returns an issuer with the given settings. The app reports invalid settings when it begins to
// serve.
func New(config Config) *Issuer {
	if config.Directory == "" {
		config.Directory = LetsEncrypt
	}
	if len(config.Challenges) == 0 {
		config.Challenges = []string{TLSALPN01, HTTP01}
	}
	config.Challenges = slices.Clone(config.Challenges)
	return &Issuer{config}
}

var _ dunlin.TLSIssuer = (*Issuer)(nil)

// Certificates loads the stored certificates of the names from disk. The result provides these
// certificates, and certificates that are obtained later. Certificates fails for an invalid setting or
// name.
func (i *Issuer) Certificates(domains []string, log *slog.Logger) (dunlin.TLSCertificates, error) {
	c := i.config
	if !c.AcceptTerms {
		return nil, errors.New("acme: Config.AcceptTerms is false: read the authority's terms of service and set it if you agree")
	}
	for _, kind := range c.Challenges {
		if kind != TLSALPN01 && kind != HTTP01 {
			return nil, fmt.Errorf("acme: Config.Challenges has %q: it must be %q or %q", kind, TLSALPN01, HTTP01)
		}
	}
	directory, err := url.Parse(c.Directory)
	if err != nil || directory.Scheme != "https" || directory.Host == "" {
		return nil, fmt.Errorf("acme: Config.Directory is %q: it must be the https URL of a directory", c.Directory)
	}
	var names []string
	for _, d := range domains {
		name := strings.TrimSuffix(strings.ToLower(d), ".")
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("acme: %q: %w", d, err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	folder, err := c.folder()
	if err != nil {
		return nil, err
	}
	s, err := openStore(filepath.Join(folder, strings.NewReplacer("/", "_", ":", "_").Replace(directory.Host+strings.TrimSuffix(directory.Path, "/"))))
	if err != nil {
		return nil, err
	}
	return newManager(c, names, s, log), nil
}

// folder returns the folder of the certificates.
func (c *Config) folder() (string, error) {
	if c.Folder != "" {
		return c.Folder, nil
	}
	if state, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); state != "" {
		return filepath.Join(state, "acme"), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("acme: no folder for certificates: set Config.Folder: %w", err)
	}
	return filepath.Join(dir, "dunlin", "acme"), nil
}

// checkName returns an error if a name cannot get a certificate by the challenges of this package. A
// valid name is also safe as a file name.
func checkName(name string) error {
	if _, err := netip.ParseAddr(name); err == nil {
		return errors.New("certificates are for names, not for addresses")
	}
	if strings.HasPrefix(name, "*.") {
		return errors.New("a wildcard needs a challenge by DNS, which is not done here: name each host")
	}
	if len(name) > 253 || !strings.Contains(name, ".") {
		return errors.New("it is not a host name on the Internet")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return errors.New("it is not a host name")
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 0x80:
				return errors.New("write it in its ASCII form (xn--…)")
			case c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z'):
				return fmt.Errorf("it has a %q, which no name of a host has", c)
			}
		}
	}
	return nil
}
