package lifecycle_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// blocker is an action that waits until it is released.
type blocker struct{ entered, release chan struct{} }

func newBlocker() *blocker {
	return &blocker{make(chan struct{}, 1), make(chan struct{})}
}

func (b *blocker) act(*dunlin.Request) dunlin.Response {
	b.entered <- struct{}{}
	<-b.release
	return dunlin.Text("finished")
}

// All log records have reached the logger when Serve returns, since the program may exit then.
func TestTheLastRecordsOfServe(t *testing.T) {
	logs := new(suite.LogBuffer)
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineStd, Logger: logs.Logger(slog.LevelInfo)})
	ln := suite.Listen(t)
	_ = ln.Close() // so that it fails
	if err := app.Serve(ln); err == nil || !strings.Contains(logs.String(), "msg=serving") {
		t.Errorf("Serve: %v\n%s", err, logs)
	}
}

// Running requests finish; new connections are refused; Serve returns nil.
func TestShutdownDrains(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		b := newBlocker()
		app, _ := suite.NewApp(dunlin.Config{Engine: engine})
		app.Get("/", b.act)
		app.Get("/probe", suite.Text("probe"))
		first, second := suite.Listen(t), suite.Listen(t)
		served := make(chan error, 2)
		for _, ln := range []net.Listener{first, second} {
			go func() { served <- app.Serve(ln) }()
			suite.Exchange(t, ln.Addr().String(), false) // both listeners are served
		}
		conn := suite.Dial(t, first.Addr().String())
		_, _ = io.WriteString(conn, suite.Request("GET /"))
		suite.Await(t, "the request", b.entered)
		down := make(chan error, 1)
		go func() { down <- app.Shutdown(context.Background()) }()
		for _, ln := range []net.Listener{first, second} {
			refused(t, ln.Addr().String())
		}
		select {
		case err := <-down:
			t.Fatalf("Shutdown returned %v while a request was running", err)
		default:
		}
		close(b.release)
		got, err := suite.ReadAnswer(bufio.NewReader(conn), "GET")
		if err != nil || !strings.HasSuffix(got, "\n\nfinished") {
			t.Errorf("the running request: got %q, %v", got, err)
		}
		if err := suite.Await(t, "Shutdown", down); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		for range 2 {
			if err := suite.Await(t, "Serve", served); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
		if err := app.Shutdown(context.Background()); err != nil {
			t.Errorf("second Shutdown: %v", err)
		}
		late := suite.Listen(t)
		if err := app.Serve(late); err == nil || !strings.Contains(err.Error(), "was shut down") {
			t.Errorf("Serve after Shutdown: %v", err)
		}
		if err := late.Close(); err == nil {
			t.Error("Serve after Shutdown did not close its listener")
		}
	})
}

// refused waits until addr refuses connections.
func refused(t *testing.T, addr string) {
	t.Helper()
	for end := time.Now().Add(suite.Patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatalf("%s still accepts connections", addr)
}

// After the timeout the remaining connections are closed, and the error reports it.
func TestShutdownWithCancelledContext(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		b := newBlocker()
		app, _ := suite.NewApp(dunlin.Config{Engine: engine})
		app.Get("/", b.act)
		ln := suite.Listen(t)
		served := make(chan error, 1)
		go func() { served <- app.Serve(ln) }()
		conn := suite.Dial(t, ln.Addr().String())
		_, _ = io.WriteString(conn, suite.Request("GET /"))
		suite.Await(t, "the request", b.entered)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := app.Shutdown(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: got %v, want %v", err, context.Canceled)
		}
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("the connection got %q", got)
		}
		suite.Await(t, "Serve", served)
		close(b.release)
	})
}

func TestRunUntilContextEnds(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(suite.LogBuffer)
		ready := make(chan net.Addr, 1)
		app := dunlin.New(dunlin.Config{
			Engine: engine, Addr: "127.0.0.1:0", Logger: logs.Logger(slog.LevelInfo),
			Ready: func(addr net.Addr, e dunlin.Engine) {
				if e != engine {
					t.Errorf("got engine %v, want %v", e, engine)
				}
				ready <- addr
			},
		})
		app.Get("/probe", suite.Text("probe"))
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- app.Run(ctx) }()
		addr := suite.Await(t, "Ready", ready).String()
		suite.Exchange(t, addr, false)
		cancel()
		if err := suite.Await(t, "Run", ran); err != nil {
			t.Errorf("Run: %v", err)
		}
		refused(t, addr)
		suite.WantLogged(t, logs, "serving", addr, "engine="+engine.String(), "draining")
	})
}

func TestListenErrors(t *testing.T) {
	busy := suite.Listen(t)
	defer func() { _ = busy.Close() }()
	app, _ := suite.NewApp(dunlin.Config{Addr: busy.Addr().String()})
	for what, err := range map[string]error{"ListenAndServe": app.ListenAndServe(busy.Addr().String()), "Run": app.Run(context.Background()), "bad address": app.ListenAndServe("nonsense")} {
		if err == nil || !strings.HasPrefix(err.Error(), "dunlin: listen") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A listener that fails ends Serve with an error.
func TestListenerFails(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		app, _ := suite.NewApp(dunlin.Config{Engine: engine})
		closed := suite.Listen(t)
		_ = closed.Close()
		served := make(chan error, 1)
		go func() { served <- app.Serve(closed) }()
		if err := suite.Await(t, "Serve", served); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve of a closed listener: %v", err)
		}
	})
}

// Serve also ends if other code closes its listener: it accepts no more connections, and continues to serve the accepted
// ones. Other listeners are not affected.
func TestListenerIsClosed(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		app, _ := suite.NewApp(dunlin.Config{Engine: engine})
		app.Get("/", suite.Text("here"))
		network := func(path string) net.Listener {
			ln, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			return ln
		}
		var lns []net.Listener
		var served []chan error
		for _, ln := range []net.Listener{suite.Listen(t), network(filepath.Join(t.TempDir(), "s")), suite.Listen(t)} {
			end := make(chan error, 1)
			go func() { end <- app.Serve(ln) }()
			lns, served = append(lns, ln), append(served, end)
		}
		ask := func(conn net.Conn) {
			t.Helper()
			suite.Send(t, conn, suite.Request("GET /"))
			suite.Answered(t, bufio.NewReader(conn), 200, "here")
		}
		dial := func(ln net.Listener) net.Conn {
			t.Helper()
			conn, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		last := dial(lns[2])
		ask(last)
		for i, ln := range lns[:2] {
			stays := dial(ln)
			ask(stays)
			_ = ln.Close()
			var failed *net.OpError
			if err := suite.Await(t, "Serve", served[i]); !errors.Is(err, net.ErrClosed) || !errors.As(err, &failed) || failed.Op != "accept" {
				t.Errorf("Serve of a listener that was closed: %v", err)
			}
			ask(stays)
			suite.Soon(t, "no listener", func() bool {
				conn, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
			ask(last)
			ask(dial(lns[2]))
		}
		if err := app.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := suite.Await(t, "Serve", served[2]); err != nil {
			t.Errorf("Serve of the other listener: %v", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for want, config := range map[string]dunlin.Config{
		"Config.Engine is Engine(9)":                           {Engine: 9},
		"Config.Limits.MaxBody is -1":                          {Limits: dunlin.Limits{MaxBody: -1}},
		"PerAddress (1000, 0) must":                            {Limits: dunlin.Limits{MaxMemoryPerConnection: 1000}},
		"PerAddress (0, -1) must":                              {Limits: dunlin.Limits{MaxMemoryPerAddress: -1}},
		"Config.Limits.MaxHead is 511":                         {Limits: dunlin.Limits{MaxHead: 511}},
		"Config.Limits.MaxHead is -1":                          {Limits: dunlin.Limits{MaxHead: -1}},
		"Config.Limits.MaxHead is 1073741825":                  {Limits: dunlin.Limits{MaxHead: 1<<30 + 1}},
		"Config.Timeouts.Action, Head, Body":                   {Timeouts: dunlin.Timeouts{Action: -1}},
		"and Idle (0s, -1s, 30s":                               {Timeouts: dunlin.Timeouts{Head: -time.Second}},
		"Config.Limits.MaxHeaders is -1":                       {Limits: dunlin.Limits{MaxHeaders: -1}},
		"PerConnection is -1":                                  {Limits: dunlin.Limits{MaxRequestsPerConnection: -1}},
		"PerConnection is 65536":                               {Limits: dunlin.Limits{MaxRequestsPerConnection: 65536}},
		"StreamsPerConnection is -1":                           {Limits: dunlin.Limits{MaxStreamsPerConnection: -1}},
		"PerConnection is 10001":                               {Limits: dunlin.Limits{MaxStreamsPerConnection: 10001}},
		"(-1, 0, 0) must not":                                  {Limits: dunlin.Limits{MaxConnections: -1}},
		"(0, -1, 0) must not":                                  {Limits: dunlin.Limits{MaxConnectionsPerLoop: -1}},
		"(0, 0, -1) must not":                                  {Limits: dunlin.Limits{MaxConnectionsPerAddress: -1}},
		"30s, 10s, -1ns) must not be negative":                 {Timeouts: dunlin.Timeouts{Idle: -1}},
		"30s, -1ns, 1m15s) must not be negative":               {Timeouts: dunlin.Timeouts{Memory: -1}},
		"Config.Process.DrainGrace and DrainTimeout (0s, -1s)": {Process: dunlin.ProcessConfig{DrainTimeout: -time.Second}},
		"Config.H2C is 3":                                      {H2C: 3},
		"Config.UncleanPaths is 7":                             {UncleanPaths: 7},
	} {
		suite.WantContains(t, "panic", suite.PanicText(func() { dunlin.New(config) }), "dunlin: New: ", want)
	}
	if text := suite.PanicText(func() { dunlin.New(dunlin.Config{}) }); text != "" {
		t.Errorf("the zero Config: got %s", text)
	}
}

func TestEngineNames(t *testing.T) {
	for _, e := range []dunlin.Engine{dunlin.EngineAuto, dunlin.EngineLoop, dunlin.EngineStd} {
		text, err := e.MarshalText()
		var back dunlin.Engine
		if err != nil || back.UnmarshalText(text) != nil || back != e || string(text) != e.String() {
			t.Errorf("%v: got %q, %v, back %v", e, text, err, back)
		}
	}
	var e dunlin.Engine
	if err := e.UnmarshalText([]byte("fast")); err == nil || !strings.Contains(err.Error(), `"fast" is none of auto, loop and std`) {
		t.Errorf("unknown engine: %v", err)
	}
}
