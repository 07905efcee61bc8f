//go:build compareprofile

package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func TestProfilesAreMounted(t *testing.T) {
	app := quietApp(dunlin.Config{})
	for target, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/cmdline": "users.test", "/debug/pprof/goroutine?debug=1": "goroutine profile"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d without %q: %.200q", target, w.Code, want, w.Body)
		}
	}
}
