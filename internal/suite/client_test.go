package suite

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// whoAsks responds with the known facts about the client.
func whoAsks(r *dunlin.Request) dunlin.Response {
	host, _, _ := net.SplitHostPort(r.Std().RemoteAddr)
	return dunlin.Text(fmt.Sprintf("%v peer=%v std=%s secure=%v", r.Remote().Addr(), r.Peer().Addr(), host, r.Secure()))
}

func TestTrustedProxies(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for _, c := range []struct {
			name    string
			config  dunlin.Config
			headers []string
			want    string
		}{
			{"no proxy is trusted", dunlin.Config{}, []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https"},
				"127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"another proxy is trusted", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"10.0.0.0/8"}}}, []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https"},
				"127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"no header", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}}}, nil,
				"127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"the last that is not trusted", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback", "10.0.0.0/8"}}},
				[]string{"X-Forwarded-For: 6.6.6.6, 203.0.113.7, 10.1.1.1", "X-Forwarded-Proto: https"},
				"203.0.113.7 peer=127.0.0.1 std=127.0.0.1 secure=true"},
			{"two lines", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}}}, []string{"X-Forwarded-For: 6.6.6.6", "x-forwarded-for: 203.0.113.7"},
				"203.0.113.7 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"malformed", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}}}, []string{"X-Forwarded-For: 6.6.6.6, <script>"},
				"127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"the other header is a client's", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}}}, []string{"Forwarded: for=6.6.6.6;proto=https"},
				"127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false"},
			{"Forwarded", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}, ForwardedHeader: "forwarded"}},
				[]string{"X-Forwarded-For: 6.6.6.6", `Forwarded: for="[2a00::1]:99";proto=https`}, "2a00::1 peer=127.0.0.1 std=127.0.0.1 secure=true"},
			{"a header of one's own", dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}, ForwardedHeader: "X-Real-IP"}},
				[]string{"X-Forwarded-For: 6.6.6.6", "X-Real-IP: 203.0.113.7"}, "203.0.113.7 peer=127.0.0.1 std=127.0.0.1 secure=false"},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.config.Engine = engine
				observed := make(chan string, 1)
				addr, _ := Start(t, c.config, func(app *dunlin.App) {
					app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
						observed <- fmt.Sprintf("%v %v", info.Remote().Addr(), info.Secure())
					}})
					app.Get("/", whoAsks)
				})
				got, err := ReadAnswer(bufio.NewReader(AskConn(t, addr, Request("GET /", c.headers...))), "GET")
				if err != nil || !strings.HasSuffix(got, "\n\n"+c.want) {
					t.Errorf("%v\n%s\nwant %s", err, got, c.want)
				}
				client, _, _ := strings.Cut(c.want, " ")
				if got, want := Await(t, "the observer", observed), client+" "+c.want[strings.LastIndexByte(c.want, '=')+1:]; got != want {
					t.Errorf("observed %q, want %q", got, want)
				}
			})
		}
	})
}

func TestLimitByClientBehindProxy(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := NewGate()
		config := dunlin.Config{Engine: engine, Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}}, Limits: dunlin.Limits{MaxConnectionsPerAddress: 1}}
		addr, _ := Start(t, config, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response { g.Pass(); return dunlin.Text("ok") }).LimitBy(nil, 1)
		})
		ask := func(client string) *bufio.Reader {
			return bufio.NewReader(AskConn(t, addr, Request("GET /", "X-Forwarded-For: "+client)))
		}
		first := ask("203.0.113.7")
		g.Await(t)
		second := ask("203.0.113.8") // over another connection of the proxy, which may have any number
		g.Await(t)
		refusedBy(t, ask("6.6.6.6, 203.0.113.7"), "429", "the limit is 1")
		g.letPass(t, first, second)
	})
}

func TestBadProxySettings(t *testing.T) {
	for _, c := range []struct {
		config dunlin.Config
		want   string
	}{
		{dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"10.0.0.1/8"}}}, `Config.Proxy.Trusted: "10.0.0.1/8" has bits set beyond its length`},
		{dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"proxy.internal"}}}, `Config.Proxy.Trusted: "proxy.internal" is not an address`},
		{dunlin.Config{Proxy: dunlin.ProxyConfig{ForwardedHeader: "X Real IP"}}, `Config.Proxy.ForwardedHeader is "X Real IP"`},
		{dunlin.Config{Proxy: dunlin.ProxyConfig{Protocol: true}}, "Config.Proxy.Protocol needs Trusted"},
	} {
		WantContains(t, "the panic", PanicText(func() { dunlin.New(c.config) }), c.want)
	}
}

// behindProxy is the configuration of a server behind proxies on 127.0.0.0/8.
func behindProxy(engine dunlin.Engine) dunlin.Config {
	return dunlin.Config{Engine: engine, Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}, Protocol: true}}
}

const (
	header1 = "PROXY TCP4 203.0.113.7 198.51.100.1 5000 80\r\n"
	header2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x13\x88\x00\x50"
	headerLocal = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
)

func TestProxyProtocol(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, behindProxy(engine), func(app *dunlin.App) { app.Handle("*", "/", whoAsks) })
		request := Request("GET /")
		for _, c := range []struct {
			name, want string
			pieces     []string
		}{
			{"version 1", "203.0.113.7 peer=203.0.113.7 std=203.0.113.7 secure=false", []string{header1 + request}},
			{"version 2", "2a00::1 peer=2a00::1 std=2a00::1 secure=false", []string{header2 + request}},
			{"the proxy's own", "127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false", []string{headerLocal + request}},
			{"unknown", "127.0.0.1 peer=127.0.0.1 std=127.0.0.1 secure=false", []string{"PROXY UNKNOWN\r\n" + request}},
			{"version 1 in pieces", "203.0.113.7 peer=203.0.113.7 std=203.0.113.7 secure=false", []string{"PRO", header1[3:20], header1[20:], request[:5], request[5:]}},
			{"version 2 in pieces", "2a00::1 peer=2a00::1 std=2a00::1 secure=false", []string{header2[:5], header2[5:15], header2[15:30], header2[30:] + request[:3], request[3:]}},
			{"the client is no proxy", "203.0.113.7 peer=203.0.113.7 std=203.0.113.7 secure=false",
				[]string{header1 + Request("GET /", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https")}},
			{"the client is a proxy as well", "203.0.113.9 peer=127.0.0.9 std=127.0.0.9 secure=true",
				[]string{"PROXY TCP4 127.0.0.9 198.51.100.1 5000 80\r\n" + Request("GET /", "X-Forwarded-For: 6.6.6.6, 203.0.113.9", "X-Forwarded-Proto: https")}},
			{"a body", "203.0.113.7 peer=203.0.113.7 std=203.0.113.7 secure=false", []string{header1 + Request("POST /", "", strings.Repeat("x", 100_000))}},
		} {
			conn := Dial(t, addr)
			for _, piece := range c.pieces {
				Send(t, conn, piece)
			}
			br := bufio.NewReader(conn)
			for range 2 { // the address stays the same
				got, err := ReadAnswer(br, "GET")
				if err != nil || !strings.HasSuffix(got, "\n\n"+c.want) {
					t.Fatalf("%s: %v\n%s\nwant %s", c.name, err, got, c.want)
				}
				if strings.Contains(c.name, "client") || c.name == "a body" {
					break
				}
				Send(t, conn, request)
			}
		}
	})
}

// A hijacked connection reports the address of its client, not of the proxy.
func TestProxyProtocolHijack(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for _, network := range []string{"tcp", "unix"} {
			for _, secure := range []bool{false, true} {
				ln, err := net.Listen(network, map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")}[network])
				if err != nil {
					t.Fatal(err)
				}
				config := behindProxy(engine)
				config.Proxy.Trusted = append(config.Proxy.Trusted, "unix")
				app, _ := NewApp(config)
				app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = fmt.Fprint(conn, conn.RemoteAddr())
					_ = conn.Close()
				}))
				served := make(chan error, 1)
				go func() {
					if secure {
						served <- app.ServeTLS(ln, tlstest.Server())
					} else {
						served <- app.Serve(ln)
					}
				}()
				for _, c := range []struct{ header, want string }{
					{header1, "203.0.113.7:5000"}, {header2, "[2a00::1]:5000"}, {headerLocal, ""},
				} {
					conn, err := net.Dial(network, ln.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					_ = conn.SetDeadline(time.Now().Add(Patience))
					want := c.want
					if want == "" && network == "tcp" {
						want = conn.LocalAddr().String()
					}
					Send(t, conn, c.header)
					if secure {
						conn = tls.Client(conn, tlstest.Client())
					}
					Send(t, conn, Request("GET /"))
					if got, err := io.ReadAll(conn); err != nil || want != "" && string(got) != want {
						t.Errorf("%s, by TLS %t, %q: got %q, %v; want %q", network, secure, c.header, got, err, want)
					}
				}
				Stop(t, app, served)
			}
		}
	})
}

// Invalid headers get no response. They are counted, and logged once a second.
func TestProxyProtocolRefused(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(LogBuffer)
		config := behindProxy(engine)
		config.Logger = logs.Logger(slog.LevelWarn)
		config.Timeouts.Head = 200 * time.Millisecond
		app, addr := startProbe(t, config)
		for i, first := range []string{
			Request("GET /probe"),
			"PROXY TCP4 203.0.113.7 198.51.100.1 5000\r\n" + Request("GET /probe"),
			"PROXY TCP4 " + strings.Repeat("1", 200),
			"\r\n\r\n\x00\r\nQUIT\n\x21\x12\x00\x00",
			"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff",
			"PROXY TCP4 203.0", // the rest does not arrive in time
			"",                 // nothing arrives
		} {
			conn := Dial(t, addr)
			Send(t, conn, first)
			if got, _ := io.ReadAll(conn); len(got) > 0 { // the connection may be closed or reset
				t.Errorf("%.40q was answered: %q", first, got)
			}
			Soon(t, "the count", func() bool { return app.Stats().Shed["proxy-header"] == uint64(i+1) })
		}
		Soon(t, "a log line", func() bool { return strings.Contains(logs.String(), "PROXY protocol header") })

		cut := Dial(t, addr)
		Send(t, cut, header1[:10])
		_ = TCP(cut).CloseWrite()
		if got, _ := io.ReadAll(cut); len(got) > 0 {
			t.Errorf("half a header was answered: %q", got)
		}
		Soon(t, "the count", func() bool { return app.Stats().Shed["proxy-header"] == 8 })
		Soon(t, "all connections to be closed", func() bool { return app.Stats().Connections.Open == 0 })
	})
}

// The header is accepted from trusted proxies only.
func TestProxyProtocolFromUntrustedPeer(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		config := behindProxy(engine)
		config.Proxy.Trusted = []string{"127.0.0.2"}
		addr, _ := Start(t, config, func(app *dunlin.App) { app.Get("/", whoAsks) })
		for _, c := range []struct{ from, first, want string }{
			{"127.0.0.1", "", "127.0.0.1 peer=127.0.0.1"},
			{"127.0.0.2", header1, "203.0.113.7 peer=203.0.113.7"},
			{"127.0.0.1", header1, "400 Bad Request"},
		} {
			conn := dialFrom(t, c.from, addr)
			Send(t, conn, c.first+Request("GET /"))
			if got, err := ReadAnswer(bufio.NewReader(conn), "GET"); err != nil && c.first == "" || !strings.Contains(got, c.want) && !strings.Contains(fmt.Sprint(err), "Date") {
				t.Errorf("%q from %s: got %v\n%s\nwant %s", c.first, c.from, err, got, c.want)
			}
		}
	})
}

// Connections count for the client that the header names until they close.
func TestProxyProtocolPerAddress(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		config := behindProxy(engine)
		config.Limits.MaxConnectionsPerAddress = 1
		app, addr := startProbe(t, config)
		open := func(header string) net.Conn {
			conn := Dial(t, addr)
			Send(t, conn, header)
			return conn
		}
		first := open(header1)
		probe(t, first)
		probe(t, open(header2))
		for range 3 {
			probe(t, open(headerLocal)) // connections of the proxy itself are not bounded
		}
		wantRefused(t, open(header1), "as many connections from this address as it takes")
		_ = first.Close()
		Soon(t, "the place to be free", func() bool {
			conn := open(header1)
			defer conn.Close()
			return strings.HasPrefix(askOnce(conn), "HTTP/1.1 200 ")
		})
		if n := app.Stats().Shed["address-limit"]; n < 1 {
			t.Errorf("%d refused by the count", n)
		}
	})
}

// The header precedes TLS. It is expected on connections that have sent nothing yet.
func TestProxyProtocolAndTLS(t *testing.T) {
	config := behindProxy(dunlin.EngineAuto)
	addr, trusted, _ := StartTLS(t, config, func(app *dunlin.App) { app.Get("/", whoAsks) })
	conn := Dial(t, addr)
	Send(t, conn, header2)
	over := tls.Client(conn, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"})
	Send(t, over, Request("GET /"))
	got, err := ReadAnswer(bufio.NewReader(over), "GET")
	if want := "\n\n2a00::1 peer=2a00::1 std=2a00::1 secure=true"; err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("%v\n%s\nwant %s", err, got, want)
	}
	if got, _ := io.ReadAll(AskConn(t, addr, "\x16\x03\x01\x00\x05hello")); len(got) > 0 {
		t.Errorf("TLS without a header was answered: %q", got)
	}
}

// A drain does not wait for connections whose header has not arrived.
func TestProxyProtocolDrain(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		config := behindProxy(engine)
		config.Timeouts.Head = 300 * time.Millisecond
		app, addr := startProbe(t, config)
		conn := Dial(t, addr)
		Send(t, conn, header1[:8])
		Soon(t, "the connection", func() bool { return app.Stats().Connections.Open == 1 })
		// The end of the test shuts the server down.
	})
}

// A drain does not wait for silent connections either. They end with the other idle ones.
func TestProxyProtocolDrainOfSilentConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("a drain waits for two seconds for first requests")
	}
	onAll(t, []Adapter{std, loop}, drainsTheSilent)
}

func drainsTheSilent(t *testing.T, engine dunlin.Engine) {
	config := behindProxy(engine)
	config.Timeouts.Head = time.Hour
	app, addr := startProbe(t, config)
	silent := Dial(t, addr)
	Soon(t, "the connection", func() bool { return app.Stats().Connections.Open == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := app.Shutdown(ctx); err != nil {
		t.Errorf("the drain: %v", err)
	}
	if got, _ := io.ReadAll(silent); len(got) > 0 {
		t.Errorf("a connection on which nothing was asked was answered: %q", got)
	}
}

// The check of trusted proxies costs a direct request nothing, and a proxied request no allocation.
func TestTrustedProxiesAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	var seen atomic.Uint32
	app, _ := NewApp(dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"10.0.0.0/8", "192.0.2.0/24"}}})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		seen.Add(uint32(r.Remote().Port()) + 1)
		return dunlin.Text("hello")
	})
	w := nowhere{http.Header{}}
	for _, headers := range []http.Header{{}, {"X-Forwarded-For": {"6.6.6.6, 203.0.113.7"}}} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RemoteAddr, r.Header = "192.0.2.1:1234", headers
		if n := testing.AllocsPerRun(1000, func() { app.ServeHTTP(w, r) }); n != 0 {
			t.Errorf("%v: got %v allocations", headers, n)
		}
	}
}

type nowhere struct{ header http.Header }

func (d nowhere) Header() http.Header         { return d.header }
func (d nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (d nowhere) WriteHeader(int)             {}
