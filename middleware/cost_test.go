package middleware_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/middleware"
)

// A headWire is the part of an event loop's wire that edge middleware uses: a parsed head, and a clock that is fixed for a
// turn.
type headWire struct {
	exchange.Wire
	head    http1.Head
	names   http1.Names // the names of head's fields, once named is true
	named   bool
	strings *exchange.Strings
	peer    netip.AddrPort
	peer4   uint32 // peer as a number, the form that connections store
	now     time.Time
	nanos   int64 // now in the form of exchange.Nanos
	server  *exchange.Server
}

func (x *headWire) Header(name string) (string, bool) {
	if x.lacks(name) {
		return "", false
	}
	v, ok := x.head.Get(name)
	if !ok {
		return "", false
	}
	return x.strings.Copy(v), true
}

func (x *headWire) List(name string) string {
	if x.lacks(name) {
		return ""
	}
	v, _ := x.head.Get(name)
	return view.String(v)
}

func (x *headWire) Glance(name string, client bool) (named bool, origin string, ip, now int64) {
	forwarded, proxies := "", x.server.Proxies
	if ip = -1; client {
		if ip = int64(x.peer4); proxies != nil && proxies.Trusts4(x.peer4) {
			forwarded = proxies.Header
		}
	}
	named, from, list, twice := x.head.Three(name, "Origin", forwarded)
	if twice {
		return exchange.GlanceAt(x, name)
	}
	if list != nil {
		ip = proxies.Client4(view.String(list))
	}
	return named, view.String(from), ip, x.nanos
}

func (x *headWire) Among(names *exchange.Names) (set uint64) {
	for i := range x.head.Len() {
		name, _ := x.head.Field(i)
		set |= names.Set(view.String(name))
	}
	return set
}

func (x *headWire) lacks(name string) bool {
	if x.head.Len() <= 10 {
		return false
	}
	if !x.named {
		x.names, x.named = x.head.Names(), true
	}
	return x.names.Lacks(name)
}

func (x *headWire) Host() string              { return x.strings.Copy(x.head.Host()) }
func (x *headWire) Spelling() string          { return "" } // no test has escapes
func (x *headWire) ContentLength() int64      { return max(x.head.ContentLength, 0) }
func (x *headWire) Received() ([]byte, bool)  { return nil, true }
func (x *headWire) Remote() netip.AddrPort    { return x.peer }
func (x *headWire) Secure() bool              { return false }
func (x *headWire) TLS() *tls.ConnectionState { return nil }
func (x *headWire) Now() time.Time            { return x.now }
func (x *headWire) Context() context.Context  { return context.Background() }

// pipelined returns a function that runs a request of the case through an app's pipeline, from the parsed head to the encoded
// header fields of the response. The function releases its resources.
func pipelined(tb testing.TB, app *dunlin.App, c *edgeCase) func() {
	run := piped(tb, app, c.request(), time.Now())
	return func() {
		if status, _ := run(); status != 200 {
			tb.Fatal(status)
		}
	}
}

// piped is like pipelined for any request. Its function returns the status and the header fields, which are valid until the
// next call.
func piped(tb testing.TB, app *dunlin.App, req *http.Request, now time.Time) func() (status int, fields []byte) {
	tb.Helper()
	var raw bytes.Buffer
	if err := req.Write(&raw); err != nil {
		tb.Fatal(err)
	}
	limits := http1.DefaultLimits()
	x := &headWire{peer: netip.MustParseAddrPort("192.0.2.1:1234"), now: now, nanos: exchange.Nanos(now)}
	peer := x.peer.Addr().As4()
	x.peer4 = binary.BigEndian.Uint32(peer[:])
	if n, err := x.head.Parse(raw.Bytes(), &limits); n == 0 || err != nil {
		tb.Fatal(n, err)
	}
	server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
	x.server = server
	call := server.Pipeline.NewCall(x)
	state := call.State()
	state.Numbers = true
	x.strings = &state.Strings
	out := make([]byte, 0, 4<<10)
	return func() (int, []byte) {
		x.named = false
		state.Set(x.head.Method.String(), view.String(x.head.Path()), "", true)
		if !call.Find(view.String(x.head.Host())) {
			call.FindCarefully(view.String(x.head.Host()))
		}
		a := call.Run()
		switch base := a.Base(); {
		case len(a.Fields()) > 0 || base == nil:
			out = a.AppendHeaders(out[:0])
		case base.IsWhole(): // as in loophttp
			out = append(out[:0], base.Wire...)
		default:
			out = a.AppendBase(out[:0])
		}
		status := a.Status()
		a.Release()
		call.End()
		return status, out
	}
}

// BenchmarkAlone measures the cost of each feature and middleware for a request on an event loop. It excludes the socket and the cost of a
// request without middleware.
//
//	go test ./middleware -run '^$' -bench Alone -benchtime 300x
func BenchmarkAlone(b *testing.B) {
	cases := append([]edgeCase{{name: "bare"}}, edgeCases()...)
	plenty := middleware.RateLimit(middleware.RateLimitConfig{Limit: 1_000_000_000, Window: time.Hour, Burst: 1_000_000_000})
	cases = append(cases, edgeCase{name: "RateLimit", feature: []dunlin.Feature{plenty}, direct: true},
		edgeCase{name: "RateLimit-behind-proxies", feature: []dunlin.Feature{plenty}})
	five := []dunlin.Feature{
		middleware.RequestID("X-Request-ID"),
		middleware.CORS(middleware.CORSConfig{Origins: []string{page}, Credentials: true}),
		middleware.SecureHeaders(middleware.SecureHeadersConfig{}),
		plenty, // this one reads the client's address
	}
	cases = append(cases, edgeCase{name: "five-together", feature: five, headers: http.Header{"Origin": {page}, "X-Forwarded-For": {"203.0.113.7"}}},
		edgeCase{name: "RequestID-random", feature: five[:1]},
		edgeCase{name: "RequestID-uuid", feature: five[:1], headers: http.Header{"X-Request-Id": {"0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55"}}},
		edgeCase{name: "five-uuid", feature: five, headers: http.Header{"Origin": {page}, "X-Forwarded-For": {"203.0.113.7"}, "X-Request-Id": {"0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55"}}})
	once := make([]func(), len(cases))
	for i := range cases {
		app, _ := cases[i].apps()
		once[i] = pipelined(b, app, &cases[i])
	}
	least := leastOf(b, once)
	for i := range cases {
		b.ReportMetric(least[i]-least[0], "ns-"+cases[i].name)
	}
	b.ReportMetric(least[0], "ns-bare")
}

// leastOf returns the duration of each function in ns: the minimum over many short runs. The functions take turns, which
// reduces the influence of other load on the machine.
func leastOf(b *testing.B, all []func()) (ns []float64) {
	const each = 1000
	ns = slices.Repeat([]float64{math.Inf(1)}, len(all))
	for b.Loop() {
		for i, run := range all {
			began := time.Now()
			for range each {
				run()
			}
			ns[i] = min(ns[i], float64(time.Since(began))/each)
		}
	}
	b.ReportMetric(0, "ns/op")
	return ns
}
