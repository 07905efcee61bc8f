package idioms_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/idioms"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
)

// The services in all frameworks answer alike.
func TestIdiomsAnswerAlike(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	std := func(h http.Handler) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result(), nil
		}
	}
	onFiber := idioms.Fiber()
	all := map[string]func(*http.Request) (*http.Response, error){
		"chi":    std(idioms.Chi()),
		"echo":   std(idioms.Echo()),
		"gin":    std(idioms.Gin()),
		"fiber":  func(r *http.Request) (*http.Response, error) { return onFiber.Test(r, fiber.TestConfig{Timeout: 0}) },
		"dunlin": dunlintest.NewTransport(idioms.Dunlin(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})).RoundTrip,
	}
	for name, serve := range all {
		for _, ask := range []struct {
			method, path, body, key string
			status                  int
			contains, servedFor     string
		}{
			{"GET", "/users/1", "", "", 200, `"name":"Ada"`, ""},
			{"GET", "/users/0", "", "", 404, "", ""},
			{"GET", "/users/x", "", "", 404, "", ""},
			{"POST", "/admin/users", `{"name":"Bea"}`, "", 401, "", ""},
			{"POST", "/admin/users", `{"name":"Bea"}`, "secret", 201, `"name":"Bea"`, "Grace"},
			{"POST", "/admin/users", `{"name":""}`, "secret", 400, "", "Grace"},
			{"POST", "/admin/users", `{`, "secret", 400, "", "Grace"},
			{"GET", "/admin/me", "", "secret", 200, "Grace", "Grace"},
		} {
			req := httptest.NewRequest(ask.method, "http://example.com"+ask.path, strings.NewReader(ask.body))
			req.Header.Set("Content-Type", "application/json")
			if ask.key != "" {
				req.Header.Set("X-Key", ask.key)
			}
			resp, err := serve(req)
			if err != nil {
				t.Errorf("%s: %s %s: %v", name, ask.method, ask.path, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != ask.status || !strings.Contains(string(body), ask.contains) || resp.Header.Get("X-Served-For") != ask.servedFor {
				t.Errorf("%s: %s %s %s: got %d %s, for %q; want %d %s, for %q", name, ask.method, ask.path, ask.body,
					resp.StatusCode, body, resp.Header.Get("X-Served-For"), ask.status, ask.contains, ask.servedFor)
			}
			if ask.status == 201 && !strings.HasPrefix(resp.Header.Get("Location"), "/users/") {
				t.Errorf("%s: got Location %q", name, resp.Header.Get("Location"))
			}
		}
	}
}

func TestLibraries(t *testing.T) {
	std := func(h http.Handler) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result(), nil
		}
	}
	onFiber := idioms.FiberLibrary()
	for name, serve := range map[string]func(*http.Request) (*http.Response, error){
		"huma":   std(idioms.HumaLibrary()),
		"fiber":  func(r *http.Request) (*http.Response, error) { return onFiber.Test(r, fiber.TestConfig{Timeout: 0}) },
		"dunlin": std(idioms.Library(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})),
	} {
		for path, want := range map[string]int{"/shelves/sea/books?limit=1&tag=a&tag=b": 200, "/shelves/none/books": 404} {
			resp, err := serve(httptest.NewRequest("GET", "http://example.com"+path, nil))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want || (want == 200) != strings.Contains(string(body), "Moby-Dick") {
				t.Errorf("%s: %s: got %d %s", name, path, resp.StatusCode, body)
			}
		}
	}
}
