package interop_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/acme"
)

// An authority is Pebble, the ACME server of Let's Encrypt for tests.
type authority struct {
	*httptest.Server
	handler chan http.Handler // holds one handler after begin
}

// newAuthority returns an authority that does not answer before begin.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"} {
		t.Setenv(name, value)
	}
	a := &authority{handler: make(chan http.Handler, 1)}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case h := <-a.handler:
			a.handler <- h
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *authority) directory() string { return a.URL + wfe.DirectoryPath }

// begin makes the authority validate all names except missing.test at the given ports of 127.0.0.1, and issue certificates with
// a lifetime of lasting seconds.
func (a *authority) begin(t *testing.T, httpPort, tlsPort int, lasting uint64) {
	t.Helper()
	names, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resolver := &dns.Server{Listener: names, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		answer := new(dns.Msg).SetReply(asked)
		if q := asked.Question[0]; q.Qtype == dns.TypeA && q.Name != "missing.test." {
			answer.Answer = append(answer.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1),
			})
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = resolver.ActivateAndServe() }()
	t.Cleanup(func() { _ = names.Close() })
	quiet, store := log.New(io.Discard, "", 0), db.NewMemoryStore()
	profiles := map[string]ca.Profile{"default": {Description: "test", ValidityPeriod: lasting}}
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, profiles)
	validation := va.New(quiet, httpPort, tlsPort, false, names.Addr().String(), store)
	front := wfe.New(quiet, store, validation, issuer, []string{"pebble.test"}, false, false, 1, 1)
	a.handler <- front.Handler()
}

// records forwards the log records of an app from level Info on, as text.
type records struct {
	slog.Handler
	to chan string
}

func (records) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h records) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	select {
	case h.to <- line:
	default: // there is no reader any more
	}
	return nil
}

// awaitRecord returns the next record that begins with prefix.
func awaitRecord(t *testing.T, from <-chan string, prefix string) string {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case line := <-from:
			if strings.HasPrefix(line, prefix) {
				return line
			}
			t.Log(line)
		case <-limit:
			t.Fatalf("got no log line that begins with %q", prefix)
		}
	}
}

// runWithACME runs an app until the end of the test or a call of end.
func runWithACME(t *testing.T, engine dunlin.Engine, issuer dunlin.TLSIssuer, domains ...string) (httpPort, tlsPort int, logged <-chan string, end func()) {
	t.Helper()
	ready := make(chan int, 2)
	lines := make(chan string, 1000)
	app := dunlin.New(dunlin.Config{
		Engine: engine, Addr: "127.0.0.1:0", TLS: dunlin.TLSConfig{
			Addr:    "127.0.0.1:0",
			HSTS:    time.Hour,
			Domains: domains,
			Issuer:  issuer,
		}, Process: dunlin.ProcessConfig{DisableRestart: true},

		Logger: slog.New(records{slog.DiscardHandler, lines}),
		Ready:  func(addr net.Addr, _ dunlin.Engine) { ready <- addr.(*net.TCPAddr).Port },
	})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("served") })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	over := false
	end = func() {
		if over {
			return
		}
		over = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	var ports [2]int
	for i := range ports {
		select {
		case ports[i] = <-ready:
		case err := <-ended:
			ended <- err
			t.Fatalf("Run returned %v", err)
		}
	}
	return ports[0], ports[1], lines, end
}

// certificateOf returns the certificate that is served for a name.
func certificateOf(t *testing.T, port int, name string) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(name); err != nil {
		t.Error(err)
	}
	return leaf
}

func TestACME(t *testing.T) {
	for _, kind := range []string{acme.TLSALPN01, acme.HTTP01} {
		for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
			t.Run(fmt.Sprint(kind, "/", engine), func(t *testing.T) {
				a, folder := newAuthority(t), t.TempDir()
				config := acme.Config{
					AcceptTerms: true, Email: "admin@example.org", Folder: folder,
					Directory: a.directory(), Challenges: []string{kind}, Client: a.Client(),
				}
				domains := []string{"one.test", "Two.test."}
				httpPort, tlsPort, logged, end := runWithACME(t, engine, acme.New(config), domains...)
				a.begin(t, httpPort, tlsPort, 3600)
				for range domains {
					awaitRecord(t, logged, "certificate obtained")
				}
				one, two := certificateOf(t, tlsPort, "one.test"), certificateOf(t, tlsPort, "two.test")
				if !strings.Contains(one.Issuer.CommonName, "Pebble") || one.Equal(two) {
					t.Errorf("got issuer %q", one.Issuer.CommonName)
				}
				if _, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(tlsPort), &tls.Config{ServerName: "other.test"}); err == nil {
					t.Error("got a certificate for another name")
				}
				end()

				// The next start finds the certificates, and sends no request to the authority.
				config.Client = &http.Client{Transport: refusing{t}}
				_, tlsPort, _, _ = runWithACME(t, engine, acme.New(config), domains...)
				if again := certificateOf(t, tlsPort, "one.test"); !again.Equal(one) {
					t.Error("the next start uses another certificate")
				}
			})
		}
	}
}

// refusing refuses all requests.
type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.t.Errorf("got a request to the authority: %s", req.URL)
	return nil, errors.New("refused")
}

// A certificate is replaced while it is served, before it expires.
func TestACMERenews(t *testing.T) {
	a, folder := newAuthority(t), t.TempDir()
	issuer := acme.New(acme.Config{AcceptTerms: true, Folder: folder, Directory: a.directory(), Client: a.Client()})
	httpPort, tlsPort, logged, end := runWithACME(t, dunlin.EngineAuto, issuer, "one.test")
	a.begin(t, httpPort, tlsPort, 3)
	awaitRecord(t, logged, "certificate obtained")
	first := certificateOf(t, tlsPort, "one.test")
	second := first // may be the second certificate already
	for second.Equal(first) {
		awaitRecord(t, logged, "certificate obtained")
		second = certificateOf(t, tlsPort, "one.test")
	}
	if !second.NotAfter.After(first.NotAfter) {
		t.Errorf("got a certificate until %[2]v after one until %[1]v", first.NotAfter, second.NotAfter)
	}
	end()
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("got files %q (error %v), want the key of the account and one certificate", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v", f, info.Mode(), err)
		}
	}
}

// Failures are logged with the name and the challenge. The other names have their certificates.
func TestACMEFails(t *testing.T) {
	a := newAuthority(t)
	issuer := acme.New(acme.Config{AcceptTerms: true, Folder: t.TempDir(), Directory: a.directory(), Client: a.Client()})
	httpPort, tlsPort, logged, _ := runWithACME(t, dunlin.EngineAuto, issuer, "missing.test", "one.test")
	a.begin(t, httpPort, tlsPort, 3600)
	var failed string
	got := make(chan struct{})
	for lines := 0; lines < 2; {
		select {
		case line := <-logged:
			switch {
			case strings.HasPrefix(line, "obtaining a certificate failed"):
				failed = line
				lines++
			case strings.HasPrefix(line, "certificate obtained name=one.test"):
				close(got)
				lines++
			}
		case <-time.After(60 * time.Second):
			t.Fatal("got no log")
		}
	}
	<-got
	for _, part := range []string{"name=missing.test", acme.TLSALPN01, acme.HTTP01, "again="} {
		if !strings.Contains(failed, part) {
			t.Errorf("got a log without %q: %s", part, failed)
		}
	}
	certificateOf(t, tlsPort, "one.test")
}
