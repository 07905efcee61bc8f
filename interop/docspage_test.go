package interop_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// The page of the document shows the description, the credentials and all operations when no operation is selected.
func TestDocsPageOverview(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while to start")
	}
	chromium := needTool(t, "chromium")
	app := dunlin.New(dunlin.Config{})
	none := func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil }
	typed.Get(app, "/plain", none).Tags("things").Summary("Shows a thing")
	typed.Delete(app, "/guarded", none).Security(typed.Requires(typed.BearerAuth("staff", "JWT"))).Summary("Removes a thing")
	openapi.Serve(app, "/docs", openapi.Config{Title: "Things", Version: "1", Description: "An API of `things`."})
	server := httptest.NewServer(http.Handler(app))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
	defer cancel()
	dom, err := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server",
		"--disable-background-networking", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--dump-dom", server.URL+"/docs").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, main, _ := strings.Cut(string(dom), "<main")
	for _, part := range []string{
		"An API of <code>things</code>.", "<h3>Login</h3>", `aria-label="staff"`, "<h3>things</h3>", "Shows a thing", "<code>/plain</code>", "<code>/guarded</code>", "Removes a thing",
	} {
		if !strings.Contains(main, part) {
			t.Errorf("got a page without %q:\n%s", part, main)
		}
	}
}
