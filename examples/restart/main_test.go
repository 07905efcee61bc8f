package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// During a drain the readiness check fails first, while the app serves for the grace time.
func TestDrain(t *testing.T) {
	ready := make(chan net.Addr, 1)
	app := newApp(dunlin.Config{
		Addr: "127.0.0.1:0", Process: dunlin.ProcessConfig{DrainGrace: time.Hour, DisableRestart: true},
		Ready: func(addr net.Addr, _ dunlin.Engine) { ready <- addr },
	})
	run, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(run) }()
	url := "http://" + (<-ready).String()
	ask := func(path string) (status int) {
		t.Helper()
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	if got := ask("/ready"); got != 200 {
		t.Errorf("/ready: got %d", got)
	}
	stop()
	for ask("/ready") != 503 { // until Run has noticed
	}
	if got := ask("/"); got != 200 {
		t.Errorf("during the grace: got %d", got)
	}
	if err := app.Shutdown(t.Context()); err != nil { // does not wait for the grace
		t.Error(err)
	}
	// Run still waits for its grace: the test does not.
}
