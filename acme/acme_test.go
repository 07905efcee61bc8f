package acme_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/acme"
)

// Tests that need an authority use Pebble, in the module interop.

func Example() {
	config := dunlin.Config{
		Addr: ":80", TLS: dunlin.TLSConfig{
			Addr:    ":443",
			HSTS:    time.Hour,
			Domains: []string{"example.com", "www.example.com"},
			Issuer:  acme.New(acme.Config{Email: "admin@example.com", AcceptTerms: true, Folder: "/var/lib/users/acme"}),
		},
	}
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("by TLS\n") })
	// err := app.Run(ctx)
}

var quiet = slog.New(slog.DiscardHandler)

func TestSettings(t *testing.T) {
	good := acme.Config{AcceptTerms: true, Folder: t.TempDir()}
	for _, test := range []struct {
		change  func(*acme.Config)
		domains string
		want    string
	}{
		{func(c *acme.Config) { c.AcceptTerms = false }, "example.com", "AcceptTerms"},
		{func(c *acme.Config) { c.Challenges = []string{"dns-01"} }, "example.com", `"dns-01"`},
		{func(c *acme.Config) { c.Directory = "http://example.com" }, "example.com", "Directory"},
		{func(c *acme.Config) { c.Directory = "example.com" }, "example.com", "Directory"},
		{func(c *acme.Config) { c.Folder = filepath.Join(c.Folder, "file") }, "example.com", "folder"},
		{func(*acme.Config) {}, "*.example.com", "wildcard"},
		{func(*acme.Config) {}, "192.0.2.1", "address"},
		{func(*acme.Config) {}, "2001:db8::1", "address"},
		{func(*acme.Config) {}, "localhost", "not a host name"},
		{func(*acme.Config) {}, "bücher.example", "ASCII"},
		{func(*acme.Config) {}, "../../etc/passwd", "not a host name"},
		{func(*acme.Config) {}, "a..example", "not a host name"},
		{func(*acme.Config) {}, "a_b.example", `'_'`},
		{func(*acme.Config) {}, "", "not a host name"},
		{func(*acme.Config) {}, "example.com example.org", ""},
		{func(*acme.Config) {}, "xn--bcher-kva.example. EXAMPLE.com", ""},
	} {
		config := good
		if err := os.WriteFile(filepath.Join(good.Folder, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		test.change(&config)
		_, err := acme.New(config).Certificates(strings.Split(test.domains, " "), quiet)
		if got := errorText(err); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%+v, %q: got %q, want %q", config, test.domains, got, test.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNothingYet(t *testing.T) {
	certs, err := acme.New(acme.Config{AcceptTerms: true, Folder: t.TempDir()}).Certificates([]string{"example.com"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, hello := range []*tls.ClientHelloInfo{
		{ServerName: "example.com"}, {}, {ServerName: "example.org"}, {ServerName: "example.com", SupportedProtos: []string{"acme-tls/1"}},
	} {
		if cert, err := certs.GetCertificate(hello); cert != nil || err == nil {
			t.Errorf("got a certificate for %q and %q", hello.ServerName, hello.SupportedProtos)
		}
	}
	if answer, ok := certs.Challenge("example.com", "/.well-known/acme-challenge/x"); ok {
		t.Errorf("got answer %q", answer)
	}
}

// An invalid file is reported, and a new certificate is requested.
func TestBadFile(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "acme.test_dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "example.com.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	asked := make(chan string, 1)
	config := acme.Config{
		AcceptTerms: true, Folder: folder, Directory: "https://acme.test/dir",
		Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked <- r.URL.String()
			<-r.Context().Done()
			return nil, r.Context().Err()
		})},
	}
	certs, err := acme.New(config).Certificates([]string{"example.com"}, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged.String(), file) {
		t.Errorf("got a log without %s: %s", file, &logged)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		certs.Renew(ctx)
	}()
	if url := <-asked; url != config.Directory {
		t.Errorf("got a request for %s", url)
	}
	cancel()
	<-ended // during an attempt
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// An unreadable account key does not cause a new account.
func TestBadAccount(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "acme.test_dir")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "account.key"), []byte("no key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	config := acme.Config{AcceptTerms: true, Folder: folder, Directory: "https://acme.test/dir"}
	certs, err := acme.New(config).Certificates([]string{"example.com"}, slog.New(slog.NewTextHandler(writer(lines), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		certs.Renew(ctx)
	}()
	if line := <-lines; !strings.Contains(line, "account.key is not a PEM file") || !strings.Contains(line, "again=1m") {
		t.Errorf("got log %s", line)
	}
	cancel()
	<-ended
}

type writer chan string

func (w writer) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}
