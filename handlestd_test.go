package dunlin_test

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// goroutine returns the name of the calling goroutine in its stack: "goroutine 7".
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(name)
}

// A standard handler without middleware runs on the goroutine of the action. Others run on their own goroutine, because
// they may have to wait until their answer is sent.
func TestGoroutineOfStandardHandlers(t *testing.T) {
	var handler, answers string
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handler = goroutine() })
	app, _ := newApp(dunlin.Config{})
	app.Install(dunlin.Hooks{Observe: func(*dunlin.AnswerInfo) { answers = goroutine() }})
	pass := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response { return next(r) }
	}
	passStd := func(next http.Handler) http.Handler { return next }
	app.HandleStd("GET", "/handle", h)
	app.Mount("/mount", h)
	app.HandleStd("GET", "/handle/wrapped", h, pass)
	app.Mount("/mount/wrapped", h, pass)
	app.Get("/from", dunlin.FromStd(h))
	act := dunlin.FromStd(h)
	app.Get("/from/called", func(r *dunlin.Request) dunlin.Response { return act(r).Header("X-Added", "1") })
	std := app.Group("/std")
	std.UseStd(passStd, passStd)
	std.HandleStd("GET", "/handle", h)
	std.HandleStd("GET", "/handle/wrapped", h, pass)
	std.Get("/from", dunlin.FromStd(h))
	app.Group("/wrapped", pass).HandleStd("GET", "/handle", h)
	for _, c := range []struct {
		path string
		own  bool
	}{
		{"/handle", false}, {"/mount", false}, {"/handle/wrapped", true}, {"/mount/wrapped", true}, {"/from", true}, {"/from/called", true},
		{"/std/handle", false}, {"/std/handle/wrapped", true}, {"/std/from", true}, {"/wrapped/handle", true},
	} {
		handler, answers = "", ""
		if resp := do(app, "GET", c.path); resp.Code != http.StatusOK {
			t.Errorf("%s: got status %d", c.path, resp.Code)
		}
		if own := handler != answers; own != c.own || handler == "" {
			t.Errorf("%s: got handler on %s, answer on %s", c.path, handler, answers)
		}
	}
}

func TestHandleStdNil(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	defer func() { wantContains(t, "HandleStd", fmt.Sprint(recover()), `HandleStd("/x"): nil handler`) }()
	app.HandleStd("GET", "/x", nil)
}
