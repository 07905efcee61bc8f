package interop_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// onEnginesTLS serves an app over TLS, with HTTP/2, on each engine. It runs f with the URL and a client that trusts the app.
func onEnginesTLS(t *testing.T, register func(t *testing.T, app *dunlin.App, url string), f func(t *testing.T, url string, client *http.Client)) {
	t.Helper()
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			url, client := serveTLS(t, engine, func(app *dunlin.App, url string) { register(t, app, url) })
			f(t, url, client)
		})
	}
}

// serveTLS serves an app over TLS, with HTTP/2, until the test ends, and returns its URL and a client that trusts it.
func serveTLS(t *testing.T, engine dunlin.Engine, register func(app *dunlin.App, url string)) (url string, client *http.Client) {
	t.Helper()
	config, client := localTLS(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := dunlin.New(dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)})
	url = "https://" + ln.Addr().String()
	register(app, url)
	served := make(chan error, 1)
	go func() { served <- app.ServeTLS(ln, config) }()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(app.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return url, client
}

// localTLS returns settings with a certificate for 127.0.0.1, and a client of HTTP/2 that trusts it.
func localTLS(t *testing.T) (*tls.Config, *http.Client) {
	t.Helper()
	issuer := httptest.NewUnstartedServer(nil)
	issuer.EnableHTTP2 = true
	issuer.StartTLS()
	t.Cleanup(issuer.Close)
	return &tls.Config{Certificates: issuer.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}, issuer.Client()
}
