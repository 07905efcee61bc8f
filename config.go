package dunlin

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/envconfig"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// Config holds the settings of an App. A zero field selects its documented default.
type Config struct {
	// Engine selects the server for connections: EngineAuto (the default) uses the loop engine
	// where it can run, and net/http elsewhere.
	Engine Engine

	// Addr is the TCP address that Run listens on. Run serves clear text on it, or TLS if there is
	// a certificate and no TLSAddr. Default: ":8080".
	Addr string

	// TLSAddr is the TCP address that Run serves by TLS in addition to Addr. It requires a
	// certificate. Default: none.
	TLSAddr string

	// TLSCert and TLSKey name the PEM files of the certificate chain and its key. They replace the
	// certificates in TLS. The app reloads them when they change. Default: none.
	TLSCert, TLSKey string

	// TLS holds the settings of TLS: certificates, client authentication and so on. Default: those of package
	// crypto/tls, which accepts TLS 1.2 and later. A connection that agrees by ALPN on a protocol of NextProtos other
	// than HTTP is closed.
	TLS *tls.Config

	// TLSDomains are the host names for which TLSIssuer obtains certificates, which replace those
	// in TLS. Default: none.
	TLSDomains []string

	// TLSIssuer obtains the certificates for TLSDomains and renews them while the app serves. The
	// module github.com/dunlinhttp/dunlin/acme has one. Default: none.
	TLSIssuer TLSIssuer

	// TLSDevelopment serves TLS with a certificate for localhost, for development. The app makes the certificate if
	// there is none and stores it in the folder dunlin of [os.UserConfigDir]. It logs the commands that make this
	// machine trust it. Default: false.
	TLSDevelopment bool

	// HSTS makes clients use TLS. A request in clear text is redirected (308) to https on the same host, unless its
	// route is exempt, see [Route.ClearText]. With TLSDomains, a request for any other host is answered with 400.
	// Answers over TLS carry the header Strict-Transport-Security (RFC 6797) with this duration, rounded down to
	// seconds. Browsers use TLS on their own for that time. Only an answer over TLS can revoke the header, so begin
	// with a few minutes.
	//
	// Behind a proxy that terminates TLS, TrustedProxies must name the proxy, or every request is redirected forever.
	// TLSDevelopment suppresses the header, which would apply to everything on localhost. The header of package
	// middleware's SecurityConfig, if set, takes precedence. Default: clear text is served.
	HSTS time.Duration

	// H2C also accepts HTTP/2 in clear text with prior knowledge (RFC 9113 section 3.3), on the same port as HTTP/1.1:
	// the first bytes of a connection decide. Requests for an upgrade are answered by HTTP/1.1, unless H2CUpgrade is
	// set.
	H2C bool

	// H2CUpgrade also accepts HTTP/2 from clients that request it by Upgrade: h2c (RFC 7540 section 3.2) in a request
	// without a body, such as curl --http2 and Java's HttpClient. Only the loop engine supports this. It implies H2C.
	// Do not set it behind a proxy that forwards Upgrade without understanding it: after the upgrade the proxy no
	// longer sees the requests.
	H2CUpgrade bool

	// Problems is the format of error answers. Its function makes the body of every problem, see [FormatProblems]. It
	// applies to problems of actions, middleware and package typed, to paths and methods without a route, panics,
	// timeouts, limits, overload, lack of memory, and requests that are malformed or too large. Documents of package
	// openapi describe it. Default: application/problem+json (RFC 9457).
	//
	// Answers that belong to no request keep their format: those of net/http to a malformed head (text/plain), and
	// those to a connection beyond a bound or in clear text on a TLS port (application/problem+json). Answers written
	// by standard handlers are not problems.
	Problems *ProblemFormat

	// Ready, if set, is called for each listener when the app serves it, with its address and engine.
	Ready func(addr net.Addr, engine Engine)

	// Logger receives failures, panics and events of the engine. Its handler runs on a goroutine of its own and may
	// block. A record caused by an action, such as its panic, delays the action for at most 50 ms, and not at all
	// while the handler is slow; nothing else waits. Up to 1,024 records are queued. Further records are dropped, and
	// counted in Stats and by a record a second. Records that actions and middleware log themselves do not pass here.
	// Default: slog.Default() when New is called.
	Logger *slog.Logger

	// MemoryLimit is the intended resident memory of the process, in bytes, including the program's own pages.
	// Default: the control group's limit (memory.max), else GOMEMLIMIT, else none. If a control group's limit leaves
	// less, after the kernel's memory for sockets and page tables, it takes precedence.
	//
	// The budget for clients is a quarter of the memory that the program itself leaves, at most 256 MiB, and 256 MiB
	// without a limit. It holds incomplete requests, bodies that an action reads completely, and answers that clients
	// have not read. When it is exhausted, the clients that hold most for longest are refused with 503, or cut off if their
	// answer has begun. Clients that hold no more than a fair share, at least 80 KiB, are served as before; bodies of
	// larger holders leave a quarter of the budget to them. Bodies that can never fit are refused with 413. A small
	// limit leaves little: with 16 MiB the budget is about 2.5 MiB, enough for 40 bodies of 60 KB that arrive slowly
	// at the same time.
	//
	// The limit also sets the default of MaxConcurrent, on the loop engine, and the pace of the garbage collector from
	// the first Serve to the end of Shutdown: GOGC and the runtime's memory limit, or GOGC alone if there is no limit
	// and only net/http serves. Settings of the program take precedence: GOGC in the environment, debug.SetGCPercent
	// with a value other than 100, debug.SetMemoryLimit while the app serves, or with a lower limit before that.
	// Memory that actions allocate is not bounded.
	MemoryLimit ByteSize

	// MaxMemoryPerConnection bounds the part of that budget that one connection, or on net/http one request, may use
	// for bodies that are read completely. A larger body is answered with 413. A body that does not fit beside others
	// of its HTTP/2 connection is answered with 503. Read buffers are additional, at most 256 KiB and twice MaxHead;
	// answers count only for MaxMemoryPerAddress. On HTTP/2 from trusted proxies it bounds each request. At least 128
	// KiB. Default: the budget.
	MaxMemoryPerConnection ByteSize

	// MaxMemoryPerAddress bounds the part of the budget that all connections from one remote address may use together,
	// including answers. Beyond it, other requests of that address make room, as described at MemoryLimit. If none
	// can, the answer is 503, for a large body after ten seconds. One answer may be larger if the address holds
	// nothing else. Addresses are counted as for MaxConnectionsPerAddress. At least 128 KiB. Default: the budget.
	MaxMemoryPerAddress ByteSize

	// MaxConcurrent is the maximum number of actions that may block at once on the loop engine. Requests of routes
	// whose actions are known to block wait in a queue; Critical ones may exceed the limit by an eighth. Default:
	// 10,000, or under a memory limit one for each 256 KiB that it leaves, if that is less, but at least 16.
	//
	// A route whose actions have not blocked lately is not queued. It may exceed the limit by one on each processor;
	// all routes that block rarely may exceed it by one together. An action that waits for its own client, to send the
	// body or to read the answer, is not counted. At most a quarter of MaxConcurrent may wait for the rest of a body
	// of up to 64 KiB; beyond that, such bodies are read completely before their actions start. A route whose bodies
	// are longer and arrive in parts counts as blocking. Use Limit to keep a hanging route from taking all places.
	MaxConcurrent int

	// AdaptiveLimit lets the loop engine choose, between 4 and MaxConcurrent, how many requests of
	// routes known to block are served at once. It lowers the number if more concurrent requests
	// take longer, because they wait for each other or for the same database. It suits routes with
	// similar durations and without streams.
	AdaptiveLimit bool

	// QueueTarget is the maximum time that requests may wait for their turn on the loop engine in
	// an overload. An overload begins when the oldest request has waited longer during ten times
	// QueueTarget, and the queue grows by requests on connections that were idle, or clients give
	// up. Then requests that have waited longer are answered with 503. Requests of a
	// [Route.Critical] are never refused. Negative: no request is refused. Default: 10 ms.
	QueueTarget time.Duration

	// MaxBody is the maximum length of a request body, in bytes, for Bytes, Body and Decode. A
	// longer body is answered with 413. Groups and routes may set their own limit. Default: 4 MiB.
	MaxBody int64

	// MaxFormFields is the maximum number of fields and files in a form. A larger form is answered
	// with 413. The parts of a multipart form may have ten times as many headers in total.
	// math.MaxInt32 leaves only the limit on the body. Default: 1,000.
	MaxFormFields int

	// MaxHead is the maximum length of a request head, in bytes, including the request line. A
	// longer head is answered with 431, or with 414 if the request line alone exceeds it; net/http
	// answers 431 to both, and allows 4 KiB more. The read buffers of the loop engine are as large,
	// and at least 64 KiB. At most 1 GiB. Default: 64 KiB.
	MaxHead int

	// MaxHeaders is the maximum number of header lines in a request. More are answered with 431. On
	// net/http it limits the number of distinct names. Default: 100.
	MaxHeaders int

	// MaxRequestsPerConnection is the maximum number of requests on a connection, up to 65,535. The
	// answer to the last one has Connection: close; on HTTP/2 the client opens another connection.
	// Default: no limit.
	MaxRequestsPerConnection int

	// MaxStreamsPerConnection is the maximum number of open streams on an HTTP/2 connection, up to 10,000. On the loop
	// engine a stream counts until its action has returned, even if the client has reset it. Default: 128.
	MaxStreamsPerConnection int

	// MaxConnections bounds the open connections of each engine. At the bound, idle connections are closed to admit
	// clients from the system's backlog. The loop engine also closes connections that wait for the rest of a request
	// or a handshake, of the address with the most. Handlers must bound their hijacked connections, here and in the
	// two fields below: such a connection no longer counts on net/http, and on the loop engine it counts until the
	// handler returns. Default: the limit on file descriptors (RLIMIT_NOFILE) less 5 %, which are left to the program.
	MaxConnections int

	// MaxConnectionsPerLoop bounds the open connections of each event loop; there is one loop for each processor. If
	// all loops are full, a new client is answered with 503 and disconnected without waiting. It has no effect on
	// net/http. Default: no bound.
	MaxConnectionsPerLoop int

	// MaxConnectionsPerAddress bounds the open connections from one remote address, on both engines together. Further
	// connections are closed at once, in clear text with a 503. The addresses of an IPv6 network of 64 bits count as
	// one; unix sockets have none. Behind a proxy all clients have the proxy's address, see TrustedProxies. Default:
	// no bound.
	MaxConnectionsPerAddress int

	// Timeout limits the time from the start of an action to the start of its answer. A later answer is discarded and
	// the client gets a 503, see Group.Timeout. Groups and routes may set their own. Default: no limit.
	Timeout time.Duration

	// HeadTimeout limits the time to receive a request head, from its first byte to its last. After it the loop engine
	// answers with 408. net/http disconnects the client, with a 400 if the head has stopped within a line. Default: 10
	// s.
	HeadTimeout time.Duration

	// BodyTimeout is the period over which MinBodyRate is measured, and so about the longest pause of a client within
	// a request body. Only time in which the server waits for more of the body counts. On net/http the period may be
	// twice as long. Default: 30 s.
	BodyTimeout time.Duration

	// MinBodyRate is the minimum rate of a request body, in bytes a second, on average over each BodyTimeout. A slower
	// client is answered with 408; an action that reads the body itself gets an error. A read deadline set by a
	// standard handler replaces it. Negative: at least one byte must arrive in each BodyTimeout. Default: 256.
	MinBodyRate int

	// WriteTimeout is the period over which MinWriteRate is measured. A client that reads nothing of an answer for
	// about this long is disconnected. Only time in which part of the answer waits for the client counts. On net/http
	// the period may be twice as long. On HTTP/2 it ends the streams that wait for the client: for its window to open,
	// or for other streams of the client. Default: 30 s.
	WriteTimeout time.Duration

	// MinWriteRate is the minimum rate at which a client must read an answer, in bytes a second, on average over each
	// WriteTimeout. A write deadline set by a standard handler replaces it. On net/http, a client of HTTP/1.1 only
	// has to read something in each WriteTimeout, and on HTTP/2 the rate is that of all streams of the connection
	// together; the last 4 KiB that a handler writes must be read within one WriteTimeout. Negative: the client must
	// read something in each WriteTimeout. Default: 256.
	MinWriteRate int

	// IdleTimeout is the maximum time that a connection may stay open without a request. Default:
	// 75 s.
	IdleTimeout time.Duration

	// TCPKeepAlive is the time of silence after which the system probes the peer of a connection, and the interval
	// between probes. After nine probes without a reply the connection is closed and the context of its request ends.
	// Negative: no probes. Default: 15 s, as for a net.ListenConfig.
	TCPKeepAlive time.Duration

	// DrainGrace is how long Run continues to serve after a signal, while Readiness answers 503.
	// Set it to the time that the load balancer takes to notice. Default: 0.
	DrainGrace time.Duration

	// DrainTimeout is how long Run waits for running requests after DrainGrace. Default: 30 s.
	DrainTimeout time.Duration

	// TrustedProxies are the proxies whose statements about the client's address the app believes:
	// addresses, prefixes ("10.0.0.0/8"), and the words loopback, private (RFC 1918 and RFC 4193)
	// and unix (every peer on a unix socket). Request.Remote, LimitBy, the access log and Stats
	// then use the client's address, and MaxConnectionsPerAddress does not count the proxies'
	// connections. Name only proxies that set the header themselves: every other peer at such an
	// address can claim any client address. Default: no proxy is trusted.
	TrustedProxies []string

	// ForwardedHeader is the header in which TrustedProxies name the client: Forwarded (RFC 7239), or a header with a
	// comma-separated list of addresses. Other headers are ignored, because proxies pass on those sent by clients.
	// Each proxy appends an address; the last address outside TrustedProxies is the client's. Default:
	// X-Forwarded-For.
	ForwardedHeader string

	// ProxyProtocol requires connections from TrustedProxies to begin with a header of the PROXY protocol, version 1
	// or 2, which names the client. A connection without it, within HeadTimeout, is closed. Connections from other
	// peers have no such header.
	ProxyProtocol bool

	// DisableGCPacing leaves the garbage collector to the program: GOGC, the runtime's memory limit, and returning
	// memory to the system when the process becomes quiet, see MemoryLimit. The budget for clients still applies.
	DisableGCPacing bool

	// DisableRestart leaves SIGHUP to the program or to the system's default, which ends the process. By default
	// SIGHUP makes Run restart the program, see Run.
	DisableRestart bool

	// RouteStats selects when requests are counted and timed by route, for Stats. This costs about
	// ten nanoseconds a request. Default: StatsAuto.
	RouteStats RouteStatsPolicy

	// DirtyPaths selects the answer to a path with empty, «.» or «..» segments. No route matches
	// such a path. Routes may have their own policy, see Route.DirtyPaths. Default: RedirectDirty.
	DirtyPaths DirtyPaths

	// RedirectSlash redirects a path that no route matches to the same path with or without a
	// trailing slash, if a route matches that. Default: such a path is answered with 404.
	RedirectSlash bool
}

// Engine names the server for connections.
type Engine uint8

const (
	EngineAuto Engine = iota // the loop engine where it can run, else net/http
	EngineLoop               // event loops: Linux
	EngineStd                // net/http
)

// String returns the name of the engine in the form that UnmarshalText reads.
func (e Engine) String() string {
	if int(e) < len(engineNames) {
		return engineNames[e]
	}
	return fmt.Sprintf("Engine(%d)", uint8(e))
}

var engineNames = []string{"auto", "loop", "std"}

// MarshalText returns the name of the engine, for configuration files.
func (e Engine) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText accepts auto, loop or std. It allows an Engine to be a flag (flag.TextVar).
func (e *Engine) UnmarshalText(text []byte) error {
	i := slices.Index(engineNames, string(text))
	if i < 0 {
		return fmt.Errorf("dunlin: engine %q is none of auto, loop and std", text)
	}
	*e = Engine(i)
	return nil
}

// DirtyPaths is a policy for paths with empty, «.» or «..» segments.
type DirtyPaths uint8

const (
	// RedirectDirty answers with a permanent redirect (308) to the clean path if a route matches
	// it, and with 404 otherwise.
	RedirectDirty DirtyPaths = iota
	// RefuseDirty answers with 400.
	RefuseDirty
	// ServeDirty passes such a path unchanged to the standard handler that is mounted at the clean
	// path. Other routes redirect. The handler must not trust the path: net/http's ServeMux cleans
	// it first, and FileServer uses the clean one.
	ServeDirty
)

// RouteStatsPolicy selects when requests are counted by route.
type RouteStatsPolicy uint8

const (
	// StatsAuto counts from the time when the App first serves a listener. An App used only by its
	// ServeHTTP counts nothing.
	StatsAuto RouteStatsPolicy = iota
	StatsOn                    // always
	StatsOff                   // never
)

// FromEnv sets the fields of config from environment variables. The name of a variable is DUNLIN_ and the name of its
// field with the words in upper case: DUNLIN_ADDR, DUNLIN_TLS_ADDR, DUNLIN_MAX_BODY. Values are numbers, sizes
// (16MiB), durations (1m30s), true or false, names of engines, and lists separated by commas; RouteStats takes auto,
// on or off, and DirtyPaths takes redirect, refuse or serve. Empty variables are ignored. The error names every
// invalid variable and every variable without a setting. After an error config is unchanged.
func FromEnv(config *Config) error {
	names := envconfig.Choices{
		reflect.TypeFor[RouteStatsPolicy](): {"auto", "on", "off"}, reflect.TypeFor[DirtyPaths](): {"redirect", "refuse", "serve"},
	}
	if err := envconfig.Fill("DUNLIN", config, os.Environ(), names); err != nil {
		return fmt.Errorf("dunlin: FromEnv: %w", err)
	}
	return nil
}

// withDefaults returns the config with its zero fields set to the defaults.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.Addr, ":8080")
	setDefault(&c.ForwardedHeader, "X-Forwarded-For")
	setDefault(&c.QueueTarget, 10*time.Millisecond)
	setDefault(&c.MaxBody, 4<<20)
	setDefault(&c.MaxFormFields, 1000)
	setDefault(&c.MaxHead, 64<<10)
	setDefault(&c.MaxHeaders, 100)
	setDefault(&c.MaxStreamsPerConnection, 128)
	setDefault(&c.HeadTimeout, 10*time.Second)
	setDefault(&c.BodyTimeout, 30*time.Second)
	setDefault(&c.MinBodyRate, 256)
	setDefault(&c.WriteTimeout, 30*time.Second)
	setDefault(&c.MinWriteRate, 256)
	setDefault(&c.IdleTimeout, 75*time.Second)
	setDefault(&c.TCPKeepAlive, defaultKeepAlive)
	setDefault(&c.DrainTimeout, 30*time.Second)
	for _, d := range []*time.Duration{
		&c.QueueTarget, &c.Timeout, &c.HeadTimeout, &c.BodyTimeout, &c.WriteTimeout, &c.IdleTimeout, &c.TCPKeepAlive, &c.DrainGrace, &c.DrainTimeout,
	} {
		*d = min(*d, longest)
	}
	return c
}

// defaultKeepAlive is also the default of package net: connections of net/http have it without a call.
const defaultKeepAlive = 15 * time.Second

// mostHead is the maximum of MaxHead, in bytes: offsets in a head are 32-bit numbers. leastCap is
// the minimum of MaxMemoryPerConnection and MaxMemoryPerAddress, in bytes.
const mostHead, leastCap = 1 << 30, 128 << 10

// longest replaces all longer durations, such as math.MaxInt64, which would overflow the clock.
const longest = 365 * 24 * time.Hour

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// mostRequests is the maximum of MaxRequestsPerConnection: connections of the loop engine count in
// 16 bits. mostStreams is the maximum of MaxStreamsPerConnection.
const mostRequests, mostStreams = 1<<16 - 1, 10_000

// validate returns an error for the first invalid setting.
func (c Config) validate() error {
	if _, err := clientaddr.ParseTrust(c.TrustedProxies); err != nil {
		return fmt.Errorf("Config.TrustedProxies: %w", err)
	}
	switch {
	case c.Engine > EngineStd:
		return fmt.Errorf("Config.Engine is %v: it must be EngineAuto, EngineLoop or EngineStd", c.Engine)
	case c.MemoryLimit < 0:
		return fmt.Errorf("Config.MemoryLimit is %d: it must not be negative", c.MemoryLimit)
	case c.MaxMemoryPerConnection != 0 && c.MaxMemoryPerConnection < leastCap || c.MaxMemoryPerAddress != 0 && c.MaxMemoryPerAddress < leastCap:
		return fmt.Errorf("Config.MaxMemoryPerConnection and MaxMemoryPerAddress (%d, %d) must be 0 or at least %d", c.MaxMemoryPerConnection, c.MaxMemoryPerAddress, leastCap)
	case c.MaxConcurrent < 0:
		return fmt.Errorf("Config.MaxConcurrent is %d: it must not be negative", c.MaxConcurrent)
	case c.MaxBody < 0:
		return fmt.Errorf("Config.MaxBody is %d: it must not be negative", c.MaxBody)
	case c.MaxFormFields < 1 || c.MaxFormFields > math.MaxInt32:
		return fmt.Errorf("Config.MaxFormFields is %d: it must be between 0 and %d", c.MaxFormFields, math.MaxInt32)
	case c.MaxHead < 512:
		return fmt.Errorf("Config.MaxHead is %d: fewer than 512 bytes would refuse ordinary requests", c.MaxHead)
	case c.MaxHead > mostHead:
		return fmt.Errorf("Config.MaxHead is %d: it must be at most %d (1 GiB)", c.MaxHead, mostHead)
	case c.MaxHeaders < 1:
		return fmt.Errorf("Config.MaxHeaders is %d: it must not be negative", c.MaxHeaders)
	case c.MaxRequestsPerConnection < 0 || c.MaxRequestsPerConnection > mostRequests:
		return fmt.Errorf("Config.MaxRequestsPerConnection is %d: it must be between 0 and %d", c.MaxRequestsPerConnection, mostRequests)
	case c.MaxStreamsPerConnection < 1 || c.MaxStreamsPerConnection > mostStreams:
		return fmt.Errorf("Config.MaxStreamsPerConnection is %d: it must be between 1 and %d", c.MaxStreamsPerConnection, mostStreams)
	case min(c.MaxConnections, c.MaxConnectionsPerLoop, c.MaxConnectionsPerAddress) < 0:
		return fmt.Errorf("Config.MaxConnections, MaxConnectionsPerLoop and MaxConnectionsPerAddress (%d, %d, %d) must not be negative",
			c.MaxConnections, c.MaxConnectionsPerLoop, c.MaxConnectionsPerAddress)
	case min(c.Timeout, c.HeadTimeout, c.BodyTimeout, c.WriteTimeout, c.IdleTimeout, c.DrainTimeout) < 0:
		return fmt.Errorf("Config.Timeout, HeadTimeout, BodyTimeout, WriteTimeout, IdleTimeout and DrainTimeout (%v, %v, %v, %v, %v, %v) must not be negative",
			c.Timeout, c.HeadTimeout, c.BodyTimeout, c.WriteTimeout, c.IdleTimeout, c.DrainTimeout)
	case c.DrainGrace < 0:
		return fmt.Errorf("Config.DrainGrace is %v: it must not be negative", c.DrainGrace)
	case c.TLSCert == "" != (c.TLSKey == ""):
		return fmt.Errorf("Config.TLSCert is %q and TLSKey %q: set both or neither", c.TLSCert, c.TLSKey)
	case c.TLSDevelopment && c.TLSCert != "":
		return fmt.Errorf("Config.TLSDevelopment makes a certificate: TLSCert is %q and must be empty", c.TLSCert)
	case len(c.TLSDomains) > 0 && c.TLSIssuer == nil:
		return fmt.Errorf("Config.TLSDomains is %q: it needs TLSIssuer, such as acme.New(acme.Config{...}) of the module github.com/dunlinhttp/dunlin/acme", c.TLSDomains)
	case c.TLSIssuer != nil && len(c.TLSDomains) == 0:
		return fmt.Errorf("Config.TLSIssuer is set: it needs TLSDomains, the names to get certificates for")
	case c.TLSIssuer != nil && (c.TLSCert != "" || c.TLSDevelopment):
		return fmt.Errorf("Config.TLSDomains get certificates: TLSCert must be empty and TLSDevelopment false")
	case c.TLSAddr != "" && !c.hasTLS():
		return fmt.Errorf("Config.TLSAddr is %q: it needs TLSCert and TLSKey, or TLS, TLSDomains or TLSDevelopment", c.TLSAddr)
	case c.HSTS < 0 || c.HSTS > 0 && c.HSTS < time.Second:
		return fmt.Errorf("Config.HSTS is %v: it must be at least a second; to make browsers forget it use SecurityConfig of package middleware", c.HSTS)
	case http1.CheckField(c.ForwardedHeader, "") != nil:
		return fmt.Errorf("Config.ForwardedHeader is %q: it is not a header name", c.ForwardedHeader)
	case c.ProxyProtocol && len(c.TrustedProxies) == 0:
		return fmt.Errorf("Config.ProxyProtocol needs Config.TrustedProxies: the header is accepted from trusted proxies only")
	case c.RouteStats > StatsOff:
		return fmt.Errorf("Config.RouteStats is %d: it must be StatsAuto, StatsOn or StatsOff", c.RouteStats)
	case c.DirtyPaths > ServeDirty:
		return fmt.Errorf("Config.DirtyPaths is %d: it must be RedirectDirty, RefuseDirty or ServeDirty", c.DirtyPaths)
	}
	return nil
}
