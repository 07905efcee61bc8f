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
	"github.com/dunlinhttp/dunlin/stats"
)

// OnEngines runs f once for each engine of this system, in clear text. It is for tests that have no TLS variant: redirects
// from clear text, H2C, the PROXY protocol, prerendered refusals, socket options, the allocations of a process (a TLS
// client has its own), and tests with their own certificates. All other tests use [OnEnginesAndTLS].
func OnEngines(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	for _, a := range inClearText(t) {
		a.On(t, f)
	}
}

// OnEnginesAndTLS is OnEngines with an additional run on the loop engine with TLS, in which Start, Dial and http.Get use
// TLS. The runs are concurrent, because many tests wait for timeouts.
func OnEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	onAll(t, append(inClearText(t), loopOverTLS), f)
}

// OnBothEngines runs f once for each engine of this system, for tests that start their servers themselves.
func OnBothEngines(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	for _, a := range []Adapter{std, loop} {
		a.On(t, f)
	}
}

// OnBothEnginesAndTLS is OnBothEngines with a run over TLS, and with concurrent runs, as in OnEnginesAndTLS.
func OnBothEnginesAndTLS(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	onAll(t, []Adapter{std, loop, loopOverTLS}, f)
}

// inClearText returns the adapters without TLS that a test runs on: also HTTP/2 and memory, except for tests named in exceptions.
func inClearText(t *testing.T) (all []Adapter) {
	test, _, _ := strings.Cut(t.Name(), "/")
	for _, a := range Adapters {
		if _, excepted := Excepted(a, test); !excepted && !a.Secure && a.Name != "std_by_h2c" {
			all = append(all, a)
		}
	}
	return all
}

// onAll runs f on several adapters concurrently.
func onAll(t *testing.T, adapters []Adapter, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	var all sync.WaitGroup
	for _, a := range adapters {
		all.Go(func() { a.On(t, f) })
	}
	all.Wait()
}

// secured reports whether the connections of a test use TLS.
func secured(t testing.TB) bool { return adapterOf(t).Secure }

// securedAddrs are the addresses of servers with TLS.
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

// NewTransport returns a new transport that dials over TLS if the server uses it.
func NewTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// ClosingTransport is NewTransport with a connection for each request.
func ClosingTransport() *http.Transport {
	transport := NewTransport()
	transport.DisableKeepAlives = true
	return transport
}

// CloseWrite shuts down the client's side of the socket. With TLS it sends no close_notify, because an unread close_notify
// would turn the server's close into a reset.
func CloseWrite(conn net.Conn) error { return TCP(conn).CloseWrite() }

// TCP returns the socket of a connection, which may be a TLS connection.
func TCP(conn net.Conn) *net.TCPConn {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	return conn.(*net.TCPConn)
}

// Patience is the maximum time of each wait; only failing tests wait so long. It is long because a busy machine may take
// long for the concurrent runs of a test.
const Patience = time.Minute

// Start serves an app on a TCP port of its own until the test ends. register adds the routes. Start sets config.Ready.
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
	if by.H2 {
		config.H2C = max(config.H2C, dunlin.H2CPriorKnowledge)
	}
	addr, logs = start(t, config, ln, secured(t), register)
	if by.H2 {
		addr = startGateway(t, toH2(addr, by.Secure))
	}
	return addr, logs
}

// StartLoop is Start on the loop engine, with GET /probe. It also returns the app.
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

// Stop shuts an app down and waits for its servers.
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

// wantNothingHeld checks that a stopped server has released all memory to its budget, once late actions have ended.
func wantNothingHeld(t *testing.T, app *dunlin.App) {
	t.Helper()
	var m stats.Memory
	if !eventually(func() bool {
		m = app.Stats().Memory
		held := m.Held
		for _, n := range m.HeldFor {
			held |= n
		}
		return held == 0
	}) {
		t.Errorf("the budget still holds %d bytes: %v", m.Held, m.HeldFor)
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

// A patientConn limits each read and write by the time that Dial sets for the whole connection.
type patientConn struct{ net.Conn }

func (c patientConn) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(Patience)) // an error would appear in the call
	return c.Conn.Read(p)
}

func (c patientConn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(Patience))
	return c.Conn.Write(p)
}

// overTLS adds TLS to a connection if the server at addr uses it.
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

// AskConn sends a request on a new connection.
func AskConn(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	conn := Dial(t, addr)
	Send(t, conn, request)
	return conn
}

// Soon waits until condition holds.
func Soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !eventually(condition) {
		t.Fatalf("not in %v: %s", Patience, what)
	}
}

// eventually reports whether condition holds within Patience. It polls often at first, and then leaves the processors to
// the server.
func eventually(condition func() bool) bool {
	limit := time.Now().Add(Patience)
	for i := 0; !condition(); i++ {
		if time.Now().After(limit) {
			return false
		}
		if i < 100 {
			runtime.Gosched()
		} else {
			<-time.After(time.Millisecond)
		}
	}
	return true
}

// Await fails the test if no value arrives in time.
func Await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("not in %v: %s", Patience, what)
		panic("unreachable")
	}
}
