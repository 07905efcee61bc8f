package dunlintest_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestServe(t *testing.T) {
	var served []string
	dunlintest.OnEngines(t, dunlin.Config{Limits: dunlin.Limits{MaxBody: 3}}, func(t *testing.T, app *dunlin.App) {
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		})
		addr := dunlintest.Serve(t, app)
		t.Cleanup(func() { // before the server's end
			resp, err := http.Post("http://"+addr, "text/plain", http.NoBody)
			if err != nil || resp.StatusCode != http.StatusNoContent {
				t.Errorf("got %+v, %v", resp, err)
				return
			}
			_ = resp.Body.Close()
		})
		resp, err := http.Post("http://"+addr, "text/plain", io.LimitReader(zeros{}, 4))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got status %s: the settings were not applied", resp.Status)
		}
		served = append(served, t.Name())
	})
	if len(served) == 0 || served[len(served)-1] != "TestServe/"+dunlin.EngineStd.String() {
		t.Errorf("got engines %v", served)
	}
}

// A test that ends, or shuts its app down, before that serves does not fail.
func TestServeOfAnAppThatIsShutDown(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		dunlintest.Serve(t, app)
		if err := app.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		dunlintest.Serve(t, app) // like a server that began late
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
