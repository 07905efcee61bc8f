package suite

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
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

// OnEngines runs f once for each engine that can serve here, in clear text. It is for what is not said of TLS:
// how clear text is redirected and told from TLS, H2C, the header of the PROXY protocol and addresses whose
// answers are rendered beforehand (who is one too many by TLS is closed), sockets' settings, what addresses proxies name (there
// a request's being secure is the proxy's word), what one process's allocations show (a client's TLS makes its
// own), and tests that have certificates of their own. All else runs by [OnEnginesAndTLS].
func OnEngines(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	for _, a := range Adapters { // also by HTTP/2 and in memory, but where exceptions name the test
		test, _, _ := strings.Cut(t.Name(), "/")
		if _, excepted := Excepted(a, test); excepted || a.Secure || a.Name == "std_by_h2c" {
			continue
		}
		a.On(t, f)
	}
}

// OnEnginesAndTLS is OnEngines that runs f also with the connections of Start and Dial, and of
// http.Get, secured, on the loop engine: there TLS is Dunlin's.
func OnEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	OnEngines(t, f)
	on(t, byTLS, dunlin.EngineLoop, f)
}

// OnBothEngines runs f once for each engine that can serve here, for tests that start their servers themselves.
func OnBothEngines(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	for _, engine := range engines {
		on(t, engine.String(), engine, f)
	}
}

// OnBothEnginesAndTLS is OnBothEngines that runs f also by TLS, as OnEnginesAndTLS does.
func OnBothEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	OnBothEngines(t, f)
	on(t, byTLS, dunlin.EngineLoop, f)
}

// AtOnceOnEnginesAndTLS is OnEnginesAndTLS that runs all f at once, for those that wait for long.
func AtOnceOnEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	var all sync.WaitGroup
	for _, engine := range engines {
		all.Go(func() { on(t, engine.String(), engine, f) })
	}
	all.Go(func() { on(t, byTLS, dunlin.EngineLoop, f) })
	all.Wait()
}

func on(t *testing.T, name string, engine dunlin.Engine, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	Adapter{Name: name, Engine: engine}.On(t, f)
}

// byTLS is the name of the loop engine by TLS.
const byTLS = "loop_by_TLS"

// secured reports whether the connections of a test are.
func secured(t testing.TB) bool { return adapterOf(t).Secure }

// securedAddrs are those of servers that speak TLS.
var securedAddrs sync.Map

func init() {
	transport := http.DefaultTransport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return overTLS(conn, addr), nil
	}
}

// NewTransport returns a transport of its own that dials by TLS where that is spoken.
func NewTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// ClosingTransport is NewTransport with a connection for each request.
func ClosingTransport() *http.Transport {
	transport := NewTransport()
	transport.DisableKeepAlives = true
	return transport
}

// CloseWrite ends the client's direction of the socket, also below TLS: a close_notify that the server has
// not read when it cuts the connection would make a reset of that.
func CloseWrite(conn net.Conn) error { return TCP(conn).CloseWrite() }

// TCP returns the socket of a connection, also below TLS.
func TCP(conn net.Conn) *net.TCPConn {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	return conn.(*net.TCPConn)
}

// Patience bounds every wait that a failing test would otherwise make for ever.
const Patience = 20 * time.Second

// Start serves an app with the routes that register makes, on a TCP port of its own,
// until the test ends. It takes config.Ready for itself.
func Start(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (addr string, logs *LogBuffer) {
	t.Helper()
	return StartOn(t, config, Listen(t), register)
}

// StartOn is Start on a listener.
func StartOn(t *testing.T, config dunlin.Config, ln net.Listener, register func(*dunlin.App)) (addr string, logs *LogBuffer) {
	t.Helper()
	by := adapterOf(t)
	started.Store(adapterTest(t), true)
	if by.Memory {
		_ = ln.Close()
		app, logs := NewApp(config)
		register(app)
		t.Cleanup(func() { wantNothingHeld(t, app) })
		return startGateway(t, toMemory(app)), logs
	}
	config.H2C = config.H2C || by.H2
	addr, logs = start(t, config, ln, secured(t), register)
	if by.H2 {
		addr = startGateway(t, toH2(addr, by.Secure))
	}
	return addr, logs
}

// StartLoop is Start on the loop engine, with GET /probe, and returns the app too.
func StartLoop(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (app *dunlin.App, addr string, logs *LogBuffer) {
	t.Helper()
	config.Engine = dunlin.EngineLoop
	addr, logs = Start(t, config, func(a *dunlin.App) {
		app = a
		a.Get("/probe", Text("probe"))
		register(a)
	})
	return app, addr, logs
}

func start(t *testing.T, config dunlin.Config, ln net.Listener, secure bool, register func(*dunlin.App)) (addr string, logs *LogBuffer) {
	t.Helper()
	ready := make(chan struct{})
	config.Ready = func(net.Addr, dunlin.Engine) { close(ready) }
	app, logs := NewApp(config)
	register(app)
	served := make(chan error, 1)
	if secure {
		securedAddrs.Store(ln.Addr().String(), true)
		t.Cleanup(func() { securedAddrs.Delete(ln.Addr().String()) })
	}
	go func() {
		if secure {
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
		Stop(t, app, served)
		wantNothingHeld(t, app)
	})
	return ln.Addr().String(), logs
}

// Stop shuts an app down and waits for what serves it.
func Stop(t *testing.T, app *dunlin.App, served ...<-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := app.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	for _, s := range served {
		if err := <-s; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// wantNothingHeld checks that a server that has stopped gave all memory back to its
// budget, once the actions that were late have ended.
func wantNothingHeld(t *testing.T, app *dunlin.App) {
	t.Helper()
	for limit := time.Now().Add(Patience); ; runtime.Gosched() {
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

// Listen listens on a port of its own.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// Dial connects to addr; the connection is closed when the test ends.
func Dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	return overTLS(conn, addr)
}

// A patientConn waits for each piece for as long as a connection of Dial does for all.
type patientConn struct{ net.Conn }

func (c patientConn) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(Patience)) // an error would show in the call
	return c.Conn.Read(p)
}

func (c patientConn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(Patience))
	return c.Conn.Write(p)
}

// overTLS secures a connection to addr if TLS is spoken there.
func overTLS(conn net.Conn, addr string) net.Conn {
	if _, secured := securedAddrs.Load(addr); secured {
		return tls.Client(conn, tlstest.Client())
	}
	return conn
}

// Send writes raw to the connection.
func Send(t *testing.T, conn io.Writer, raw string) {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatalf("send %.60q: %v", raw, err)
	}
}

// AskConn sends a request on a connection of its own.
func AskConn(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	conn := Dial(t, addr)
	Send(t, conn, request)
	return conn
}

// Soon waits until condition holds.
func Soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(Patience); !condition(); {
		if time.Now().After(limit) {
			t.Fatalf("not in %v: %s", Patience, what)
		}
		runtime.Gosched()
	}
}

// Await fails the test when nothing comes.
func Await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}
