package interop_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// browserPatience is for a browser that starts on a busy machine.
const browserPatience = time.Minute

// page asks another origin and reports to its own what it got.
const page = `<!doctype html><script>
const requests = [
	["GET", "/ok"], ["GET", "/nowhere"], ["PUT", "/ok"], ["POST", "/unprocessable"], ["GET", "/late"],
	["GET", "/limited"], ["GET", "/panic"], ["POST", "/large"], ["PUT", "/preflight"],
];
(async () => {
	const got = {};
	for (const [method, path] of requests) {
		const key = method + " " + path;
		try {
			const options = {method, mode: "cors", headers: {}};
			if (method != "GET") options.body = "x".repeat(1000);
			if (path == "/preflight") options.headers["X-Key"] = "1";
			const resp = await fetch("ORIGIN" + path, options);
			got[key] = resp.status + " " + await resp.text();
		} catch (e) {
			got[key] = "failed: " + e;
		}
	}
	await fetch("/report", {method: "POST", body: JSON.stringify(got)});
})();
</script>`

// A page of another origin sees status and body of every answer, also of those that no action made.
func TestBrowserSeesEveryAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while to start")
	}
	chromium := needTool(t, "chromium")
	onEngines(t, func(t *testing.T, app *dunlin.App) {
		config := middleware.CORSConfig{Origins: []string{"http://127.0.0.1:*"}, Headers: []string{"X-Key", "Content-Type"}}
		app.Policy(middleware.SendCORS(config))
		app.Use(middleware.CORS(config))
		app.Get("/ok", func(*dunlin.Request) dunlin.Response { return dunlin.Text("fine") })
		app.Put("/preflight", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("with key " + r.Header("X-Key")) })
		app.Post("/unprocessable", func(*dunlin.Request) dunlin.Response {
			return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusUnprocessableEntity, Detail: "no such thing"})
		})
		release := make(chan struct{})
		app.Get("/release", func(*dunlin.Request) dunlin.Response { close(release); return dunlin.NoContent() })
		app.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.NoContent() }).Timeout(time.Millisecond)
		busy := make(chan struct{}, 1)
		app.Get("/limited", func(*dunlin.Request) dunlin.Response { busy <- struct{}{}; <-release; return dunlin.NoContent() }).Limit(1)
		app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("asked for") })
		app.Post("/large", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		}).MaxBody(10)
		app.Get("/hold", func(*dunlin.Request) dunlin.Response { <-busy; return dunlin.NoContent() })
	}, func(t *testing.T, url string) {
		holdLimited(t, url)
		defer ask(t, "GET", url+"/release", "")
		report := make(chan map[string]string, 1)
		pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/report" {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(strings.ReplaceAll(page, "ORIGIN", url)))
				return
			}
			var got map[string]string
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			report <- got
		}))
		defer pages.Close()
		browse(t, chromium, pages.URL)
		select {
		case got := <-report:
			for request, want := range map[string]string{
				"GET /ok": "200 fine", "GET /nowhere": "404 ", "PUT /ok": "405 ", "POST /unprocessable": "422 ", "GET /late": "503 ",
				"GET /limited": "503 ", "GET /panic": "500 ", "POST /large": "413 ", "PUT /preflight": "200 with key 1",
			} {
				if !strings.HasPrefix(got[request], want) || want[0] != '2' && !strings.Contains(got[request], `"status":`+want[:3]) {
					t.Errorf("%s: the page sees %q, want %s", request, got[request], want)
				}
			}
		case <-time.After(browserPatience):
			t.Error("the browser has not reported")
		}
	})
}

// holdLimited has one request take the only place of /limited until the test ends.
func holdLimited(t *testing.T, url string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("GET /limited HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if resp, _ := ask(t, "GET", url+"/hold", ""); resp.StatusCode != http.StatusNoContent { // answered once that runs
		t.Fatal(resp.Status)
	}
}

// browse has a browser show a page until the test ends.
func browse(t *testing.T, chromium, url string) {
	t.Helper()
	profile, err := os.MkdirTemp("", "browser") // not t.TempDir: what the browser leaves behind may still write there
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--no-proxy-server",
		"--user-data-dir="+profile, "--ignore-certificate-errors", url)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "HOME="+profile)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(profile)
		if t.Failed() {
			t.Logf("the browser said: %s", &said)
		}
	})
}
