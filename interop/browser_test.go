package interop_test

import (
	"encoding/json"
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

// browserPatience is the time for a browser to start on a busy machine.
const browserPatience = time.Minute

// page sends requests to another origin and reports the results to its own origin.
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

// A page of another origin can read the status and the body of every response, including responses that no action made.
func TestBrowserSeesEveryAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while to start")
	}
	chromium := needTool(t, "chromium")
	t.Run("in clear text", func(t *testing.T) {
		onEngines(t, func(_ *testing.T, app *dunlin.App) { allAnswers(app) }, func(t *testing.T, url string) {
			seeEveryAnswer(t, chromium, url, http.DefaultClient, "HTTP/1.1")
		})
	})
	t.Run("by TLS", func(t *testing.T) {
		onEnginesTLS(t, func(_ *testing.T, app *dunlin.App, _ string) { allAnswers(app) }, func(t *testing.T, url string, client *http.Client) {
			seeEveryAnswer(t, chromium, url, client, "HTTP/2.0")
		})
	})
}

// allAnswers registers routes for all kinds of responses, with CORS.
func allAnswers(app *dunlin.App) {
	config := middleware.CORSConfig{Origins: []string{"http://127.0.0.1:*"}, Headers: []string{"X-Key", "Content-Type"}}
	app.Install(middleware.CORS(config))
	app.Install(middleware.CORS(config))
	app.Get("/ok", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("fine by " + r.Std().Proto) })
	app.Put("/preflight", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("with key " + r.Header("X-Key")) })
	app.Post("/unprocessable", func(*dunlin.Request) dunlin.Response {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnprocessableEntity, Detail: "not found"})
	})
	release := make(chan struct{})
	app.Get("/release", func(*dunlin.Request) dunlin.Response { close(release); return dunlin.NoContent() })
	app.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.NoContent() }).Timeout(time.Millisecond)
	busy := make(chan struct{}, 1)
	app.Get("/limited", func(*dunlin.Request) dunlin.Response { busy <- struct{}{}; <-release; return dunlin.NoContent() }).Limit(1)
	app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("requested by the test") })
	app.Post("/large", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Bytes(); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	}).MaxBody(10)
	app.Get("/hold", func(*dunlin.Request) dunlin.Response { <-busy; return dunlin.NoContent() })
}

// seeEveryAnswer makes a page of another origin request all responses, and checks its results.
func seeEveryAnswer(t *testing.T, chromium, url string, client *http.Client, proto string) {
	holdLimited(t, url, client)
	got := report(t, chromium, page, url)
	for request, want := range map[string]string{
		"GET /ok": "200 fine by " + proto, "GET /nowhere": "404 ", "PUT /ok": "405 ", "POST /unprocessable": "422 ", "GET /late": "503 ",
		"GET /limited": "503 ", "GET /panic": "500 ", "POST /large": "413 ", "PUT /preflight": "200 with key 1",
	} {
		if !strings.HasPrefix(got[request], want) || want[0] != '2' && !strings.Contains(got[request], `"status":`+want[:3]) {
			t.Errorf("%s: page: got %q, want %s", request, got[request], want)
		}
	}
}

// report returns the results of a page in a browser with requests to an origin.
func report(t *testing.T, chromium, page, url string) (got map[string]string) {
	t.Helper()
	reports := make(chan map[string]string, 1)
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
		reports <- got
	}))
	defer pages.Close()
	browse(t, chromium, pages.URL)
	select {
	case got = <-reports:
	case <-time.After(browserPatience):
		t.Fatal("got no report from the browser")
	}
	return got
}

// holdLimited occupies the only slot of /limited with a request until the end of the test.
func holdLimited(t *testing.T, url string, client *http.Client) {
	t.Helper()
	get := func(path string) (status int) {
		resp, err := client.Get(url + path)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	held := make(chan int, 1)
	go func() { held <- get("/limited") }()
	if status := get("/hold"); status != http.StatusNoContent { // answered once the request runs
		t.Fatal(status)
	}
	t.Cleanup(func() { // before the app ends
		get("/release")
		if status := <-held; status != http.StatusNoContent {
			t.Errorf("request in the slot: got %d", status)
		}
	})
}

// browse shows a page in a browser until the end of the test.
func browse(t *testing.T, chromium, url string) {
	t.Helper()
	profile, err := os.MkdirTemp("", "browser") // not t.TempDir: remaining processes of the browser may still write there
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
			t.Logf("output of the browser: %s", &said)
		}
	})
}
