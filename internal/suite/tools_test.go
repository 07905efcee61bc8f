package suite

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Clients of other projects.

// findTool returns the path of a program, and skips the test if the program is not installed.
func findTool(t *testing.T, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("DUNLIN_REQUIRE_ALL is set: %v", err)
		}
		t.Skipf("%v: install it to run this test (Debian packages curl, nghttp2-client)", err)
	}
	return path
}

// runTool runs a program and returns its standard output.
func runTool(t *testing.T, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", path, args, err, out, &stderr)
	}
	return string(out)
}

func TestCurl(t *testing.T) {
	curl := findTool(t, "curl")
	clear, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge}, func(app *dunlin.App) { app.Get("/proto", Proto) })
	certFile, keyFile, _ := NewCert(t)
	secure := startWith(t, certFile, keyFile)
	for _, c := range []struct {
		option, url, want string
	}{
		{"--http1.1", "http://" + clear, "HTTP/1.1 clear"},
		{"--http2", "http://" + clear, "HTTP/1.1 clear"}, // by Upgrade
		{"--http2-prior-knowledge", "http://" + clear, "HTTP/2.0 clear"},
		{"--http1.1", "https://" + secure, "HTTP/1.1 TLS"},
		{"--http2", "https://" + secure, "HTTP/2.0 TLS"},
	} {
		if got := runTool(t, curl, "-sS", "--cacert", certFile, c.option, c.url+"/proto"); got != c.want {
			t.Errorf("curl %s: got %q, want %q", c.option, got, c.want)
		}
	}
}

func TestH2Load(t *testing.T) {
	h2load := findTool(t, "h2load")
	clear, _ := Start(t, dunlin.Config{H2C: dunlin.H2CPriorKnowledge}, func(app *dunlin.App) { app.Get("/proto", Proto) })
	certFile, keyFile, _ := NewCert(t)
	for _, url := range []string{"http://" + clear, "https://" + startWith(t, certFile, keyFile)} {
		out := runTool(t, h2load, "-n2000", "-c10", "-m10", url+"/proto")
		WantContains(t, "h2load "+url, out, "2000 succeeded, 0 failed, 0 errored, 0 timeout", "h2")
	}
}

// startWith serves TLS with the certificate in the given files until the test ends.
func startWith(t *testing.T, certFile, keyFile string) (addr string) {
	t.Helper()
	ready := make(chan struct{})
	app, _ := NewApp(dunlin.Config{Ready: func(net.Addr, dunlin.Engine) { close(ready) }})
	app.Get("/proto", Proto)
	ln := Listen(t)
	served := make(chan error, 1)
	go func() { served <- app.ServeTLS(ln, LoadConfig(t, certFile, keyFile)) }()
	Await(t, "the server", ready) // the server must have started before it can be shut down
	t.Cleanup(func() { Stop(t, app, served) })
	return ln.Addr().String()
}
