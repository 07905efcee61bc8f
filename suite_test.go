package dunlin_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// engines are what every test over a real connection runs on.
var engines = []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop}

// onEngines runs f once for each engine that can serve here.
func onEngines(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			f(t, engine)
		})
	}
}

// onEnginesAndTLS is onEngines that runs f also with the connections of start and dial, and of
// http.Get, secured, on the loop engine: there TLS is Dunlin's.
func onEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	onEngines(t, f)
	t.Run(byTLS, func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the loop engine runs on Linux only")
		}
		f(t, dunlin.EngineLoop)
	})
}

// byTLS is the name of subtests whose connections are secured.
const byTLS = "loop_by_TLS"

// secured reports whether the connections of a test are.
func secured(t testing.TB) bool { return strings.Contains(t.Name(), "/"+byTLS) }

// securedAddrs are those of servers that speak TLS.
var securedAddrs sync.Map

func init() {
	transport := http.DefaultTransport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if _, secured := securedAddrs.Load(addr); secured && err == nil {
			conn = tls.Client(conn, tlstest.Client())
		}
		return conn, err
	}
}

// closeWrite ends the client's direction of the socket, also below TLS: a close_notify that the server has
// not read when it cuts the connection would make a reset of that.
func closeWrite(conn net.Conn) error {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	return conn.(*net.TCPConn).CloseWrite()
}

// logBuffer is what an app under test logs, one line of text a record.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// logger returns a logger that writes to the buffer from level on.
func (l *logBuffer) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// newApp returns an app that logs errors to the buffer it returns.
func newApp(config dunlin.Config) (*dunlin.App, *logBuffer) {
	logs := new(logBuffer)
	if config.Logger == nil {
		config.Logger = logs.logger(slog.LevelError)
	}
	return dunlin.New(config), logs
}

// patience bounds every wait that a failing test would otherwise make for ever.
const patience = 20 * time.Second

// start serves an app with the routes that register makes, on a TCP port of its own,
// until the test ends. It takes config.Ready for itself.
func start(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (addr string, logs *logBuffer) {
	t.Helper()
	return startOn(t, config, listen(t), register)
}

// startOn is start on a listener.
func startOn(t *testing.T, config dunlin.Config, ln net.Listener, register func(*dunlin.App)) (addr string, logs *logBuffer) {
	t.Helper()
	ready := make(chan struct{})
	config.Ready = func(net.Addr, dunlin.Engine) { close(ready) }
	app, logs := newApp(config)
	register(app)
	served := make(chan error, 1)
	if secured(t) {
		securedAddrs.Store(ln.Addr().String(), true)
		t.Cleanup(func() { securedAddrs.Delete(ln.Addr().String()) })
	}
	go func() {
		if secured(t) {
			served <- app.ServeTLS(ln, tlstest.Server())
		} else {
			served <- app.Serve(ln)
		}
	}()
	select {
	case <-ready:
	case err := <-served:
		t.Fatalf("Serve returned at once: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := app.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		wantNothingHeld(t, app)
	})
	return ln.Addr().String(), logs
}

// wantNothingHeld checks that a server that has stopped gave all memory back to its
// budget, once the actions that were late have ended.
func wantNothingHeld(t *testing.T, app *dunlin.App) {
	t.Helper()
	for limit := time.Now().Add(patience); ; runtime.Gosched() {
		m := app.Stats().Memory
		held := m.Held
		for _, n := range m.HeldFor {
			held |= n
		}
		if held == 0 {
			return
		}
		if time.Now().After(limit) {
			t.Errorf("the budget still holds %d bytes: %v", m.Held, m.HeldFor)
			return
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// dial connects to addr; the connection is closed when the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, secured := securedAddrs.Load(addr); secured {
		return tls.Client(conn, tlstest.Client())
	}
	return conn
}

// send writes raw to the connection.
func send(t *testing.T, conn io.Writer, raw string) {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatalf("send %.60q: %v", raw, err)
	}
}

// askConn sends a request on a connection of its own.
func askConn(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	conn := dial(t, addr)
	send(t, conn, request)
	return conn
}

// soon waits until condition holds.
func soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); {
		if time.Now().After(limit) {
			t.Fatalf("not in %v: %s", patience, what)
		}
		runtime.Gosched()
	}
}

// await fails the test when nothing comes.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// do runs one request through App.ServeHTTP.
func do(app *dunlin.App, method, target string, headers ...string) *httptest.ResponseRecorder {
	return doBody(app, method, target, "", headers...)
}

// doBody is do with a body.
func doBody(app *dunlin.App, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	var src io.Reader
	if body != "" {
		src = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, src)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

// respond answers GET / with an action, once, and returns what the client
// sees and what was logged.
func respond(t *testing.T, act dunlin.Action) (w *httptest.ResponseRecorder, logged string) {
	t.Helper()
	app, logs := newApp(dunlin.Config{})
	app.Get("/", act)
	return do(app, http.MethodGet, "/"), logs.String()
}

// respondWith is respond for a response that needs no request.
func respondWith(t *testing.T, build func() dunlin.Response) (w *httptest.ResponseRecorder, logged string) {
	t.Helper()
	return respond(t, func(*dunlin.Request) dunlin.Response { return build() })
}

// constant is the action that always answers resp.
func constant(resp dunlin.Response) dunlin.Action {
	return func(*dunlin.Request) dunlin.Response { return resp }
}

// text is the action that answers 200 with s.
func text(s string) dunlin.Action { return constant(dunlin.Text(s)) }

// panicText returns what f panics with, "" when it does not.
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text, _ = v.(string)
			if text == "" {
				text = "not a string"
			}
		}
	}()
	f()
	return ""
}

// wantContains reports which of the parts text lacks.
func wantContains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// wantLacks reports which of the parts text holds.
func wantLacks(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s holds %q:\n%s", what, part, text)
		}
	}
}

// A gate holds actions up until the test lets them go.
type gate struct {
	entered chan struct{} // one for each action that has come
	open    chan struct{} // one lets one action go
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{}, 100)} }

// pass is called by the action that is to be held up.
func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.open
}

// await waits until an action has come to the gate.
func (g *gate) await(t *testing.T) {
	t.Helper()
	await(t, "an action at the gate", g.entered)
}
