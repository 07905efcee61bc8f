package middleware_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// onEngines runs f with an app on each engine available here. f registers the routes; serve starts the app and returns its
// address.
func onEngines(t *testing.T, f func(t *testing.T, app *dunlin.App, serve func() (addr string))) {
	t.Helper()
	onEnginesWith(t, quiet, f)
}

// onEnginesWith is onEngines with a given configuration.
func onEnginesWith(t *testing.T, config dunlin.Config, f func(t *testing.T, app *dunlin.App, serve func() (addr string))) {
	t.Helper()
	dunlintest.OnEngines(t, config, func(t *testing.T, app *dunlin.App) {
		f(t, app, func() string {
			t.Helper()
			return dunlintest.Serve(t, app)
		})
	})
}

// exchangeRaw sends text unchanged and returns the response and its body.
func exchangeRaw(t *testing.T, addr, text string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, suite.Body(t, resp)
}
