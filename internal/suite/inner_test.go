package suite_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	. "github.com/dunlinhttp/dunlin/internal/suite"
)

// runInner runs an app with the inner address until the test ends, and returns the public address.
func runInner(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (app *dunlin.App, addr string, stop func() error) {
	t.Helper()
	ready := make(chan net.Addr, 1)
	config.Addr, config.Process.DisableRestart = "127.0.0.1:0", true
	config.Ready = func(addr net.Addr, _ dunlin.Engine) { ready <- addr }
	app, _ = NewApp(config)
	register(app)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	stop = func() error {
		cancel()
		err := Await(t, "the end of Run", ended)
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return app, Await(t, "the public address", ready).String(), stop
}

func TestInnerAddress(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		var inner *dunlin.Group
		config := dunlin.Config{Engine: engine, Proxy: dunlin.ProxyConfig{Protocol: true, Trusted: []string{"10.0.0.0/8"}}}
		app, addr, stop := runInner(t, config, func(app *dunlin.App) {
			app.Use(func(dunlin.Action) dunlin.Action {
				return func(*dunlin.Request) dunlin.Response { return dunlin.Text("from the middleware of the app") }
			})
			app.Get("/public", Text("public"))
			inner = app.Inner("127.0.0.1:0")
			inner.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) })
			inner.Get("/ready", app.Readiness()).Critical()
			inner.Group("/admin").Get("/", Text("admin"))
			if again := app.Inner("127.0.0.1:0"); again != inner {
				t.Error("the second call for the address returned another group")
			}
		})
		addrs := inner.App().Addrs()
		if len(addrs) != 1 || len(app.Addrs()) != 1 || app.Addrs()[0].String() != addr {
			t.Fatalf("the app serves %v, its inner address is %v", app.Addrs(), addrs)
		}
		c := Client(t, nil, HTTP1)
		for url, want := range map[string]string{
			addr + "/public": "200 from the middleware", addr + "/stats": "200 from the middleware", addr + "/admin/": "200 from the middleware",
			addrs[0].String() + "/public": "404 ", addrs[0].String() + "/stats": `200 {"connections"`, addrs[0].String() + "/ready": "200 ok",
			addrs[0].String() + "/admin/": "200 admin",
		} {
			resp, body := Get(t, c, "http://"+url)
			if got := strings.Fields(resp.Status)[0] + " " + body; !strings.HasPrefix(got, want) {
				t.Errorf("%s: got %.100q, want %q", url, got, want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if _, err := http.Get("http://" + addrs[0].String() + "/ready"); err == nil {
			t.Error("the inner address is served after the end of the app")
		}
	})
}

// A route of the inner address only is a 404 on the public one.
func TestInnerRoutesAreNotPublic(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Inner("127.0.0.1:9090").Get("/secret", Text("secret"))
		})
		answers := Exchange(t, addr, false, Request("GET /secret"))
		if len(answers) != 1 || !strings.Contains(answers[0], " 404 ") {
			t.Errorf("the public address answers %q", answers)
		}
	})
}

// The drain of the app waits for requests to the inner address.
func TestInnerAddressDrains(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		gate, ended := NewGate(), make(chan error, 1)
		var inner *dunlin.Group
		app, _, stop := runInner(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			inner = app.Inner("127.0.0.1:0")
			inner.Get("/slow", func(*dunlin.Request) dunlin.Response { gate.Pass(); return dunlin.Text("done") })
		})
		answer := make(chan string, 1)
		go func() {
			_, body := Get(t, Client(t, nil, HTTP1), "http://"+inner.App().Addrs()[0].String()+"/slow")
			answer <- body
		}()
		gate.Await(t)
		go func() { ended <- stop() }()
		Await(t, "the drain", app.Draining())
		Await(t, "the drain, as the inner app sees it", inner.App().Draining())
		gate.Open <- struct{}{}
		if got := Await(t, "the answer", answer); got != "done" {
			t.Errorf("answer %q", got)
		}
		if err := Await(t, "the end", ended); err != nil {
			t.Error(err)
		}
	})
}

func TestInnerAddressIsChecked(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	for addr, want := range map[string]string{
		"9090": "missing port", "127.0.0.1": "missing port", "127.0.0.1:": "must be a number", "127.0.0.1:70000": "must be a number", "127.0.0.1:nosuch": "must be a number",
	} {
		WantContains(t, addr, PanicText(func() { app.Inner(addr) }), "dunlin: Inner(", want, "inner_test.go:")
	}
	for _, c := range [][3]string{ // public, over TLS, inner
		{"127.0.0.1:9181", "", "127.0.0.1:9181"}, {":9181", "", "127.0.0.1:9181"}, {"127.0.0.1:9181", "", ":9181"}, {"127.0.0.1:0", "127.0.0.1:9181", "127.0.0.1:9181"},
	} {
		config := dunlin.Config{Addr: c[0], TLS: dunlin.TLSConfig{Addr: c[1]}, Process: dunlin.ProcessConfig{DisableRestart: true}}
		if c[1] != "" {
			config.TLS.Cert, config.TLS.Key, _ = NewCert(t)
		}
		app, _ := NewApp(config)
		app.Inner(c[2])
		err := app.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "inner address "+c[2]+": it overlaps the public address") {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// An inner address that is in use ends Run, and closes the public address.
func TestInnerAddressInUse(t *testing.T) {
	taken := Listen(t)
	app, _ := NewApp(dunlin.Config{Addr: "127.0.0.1:0", Process: dunlin.ProcessConfig{DisableRestart: true}})
	app.Inner(taken.Addr().String())
	err := app.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "dunlin: inner address "+taken.Addr().String()+": ") {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestInnerAfterServing(t *testing.T) {
	app, _, _ := runInner(t, dunlin.Config{}, func(*dunlin.App) {})
	WantContains(t, "the panic", PanicText(func() { app.Inner("127.0.0.1:9090") }), "the app serves already")
	other, _ := NewApp(dunlin.Config{})
	inner := other.Inner("127.0.0.1:9090").App()
	WantContains(t, "the panic", PanicText(func() { inner.Inner("127.0.0.1:9091") }), "the app is that of an inner address")
}
