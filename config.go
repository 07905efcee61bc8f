package dunlin

import (
	"cmp"
	"crypto/tls"
	"errors"
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
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/stats"
)

// Config holds the settings of an App. A zero field selects its documented default.
type Config struct {
	// Engine selects the server for connections: EngineAuto (the default) uses the loop engine
	// where it can run, and net/http elsewhere.
	Engine Engine

	// Addr is the TCP address that Run listens on. Run serves clear text on it, or TLS if there is
	// a certificate and no TLS.Addr. Default: ":8080".
	Addr string

	// TLS holds the certificates and the address of TLS. Default: clear text is served.
	TLS TLSConfig

	// Limits bounds the resources that clients may use: memory, concurrency, the size of requests, connections.
	Limits Limits

	// Timeouts limits the time that requests and connections may take.
	Timeouts Timeouts

	// Proxy names the proxies in front of the app. Default: none is trusted.
	Proxy ProxyConfig

	// Process controls what Run does to the process: its end, its restart, and the pace of its garbage collector.
	Process ProcessConfig

	// H2C selects whether HTTP/2 is also accepted in clear text, on the same port as HTTP/1.1. Default: H2COff.
	H2C H2C

	// Problems is the format of error answers. Its function makes the body of every problem, see [FormatProblems]. It
	// applies to problems of actions, middleware and package typed, to paths and methods without a route, panics,
	// timeouts, limits, overload, lack of memory, and requests that are malformed or too large. Documents of package
	// openapi describe it. Default: application/problem+json (RFC 9457).
	//
	// Answers without a request keep their format: answers of net/http to a malformed head (text/plain), and answers
	// to a connection beyond a limit or in clear text on a TLS port (application/problem+json). Answers written by
	// standard handlers are not problems.
	Problems *ProblemFormat

	// Ready, if set, is called when the app serves a listener, with the address and engine of the listener.
	Ready func(addr net.Addr, engine Engine)

	// Logger receives failures, panics and events of the engine. Its handler runs on a goroutine of its own and may
	// block. A record caused by an action, such as its panic, delays the action for at most 50 ms, and not while the
	// handler is slow. Nothing else waits for the handler. Up to 1,024 records are queued. Further records are
	// dropped; Stats, and one log record a second, count them. Records that actions and middleware log themselves do
	// not use this queue. Default: slog.Default() when New is called.
	Logger *slog.Logger

	// RouteStats selects when requests are counted and timed by route, for Stats. This costs about
	// ten nanoseconds a request. Default: stats.Auto.
	RouteStats stats.RoutePolicy

	// UncleanPaths selects the answer to a path with empty, «.» or «..» segments. No route matches
	// such a path. Routes may have their own policy, see Route.UncleanPaths. Default: UncleanPathsRedirect.
	UncleanPaths UncleanPaths

	// RedirectSlash redirects a path that no route matches to the path with or without a trailing slash,
	// if a route matches the target. Default: a path that no route matches is answered with 404.
	RedirectSlash bool
}

// TLSConfig holds the settings of TLS. A zero field selects its documented default.
type TLSConfig struct {
	// Addr is the TCP address that Run serves over TLS in addition to Config.Addr. It requires a certificate. Default: none.
	Addr string `env:"TLS_ADDR"`

	// Cert is the name of the PEM file of the certificate chain, and Key the name of the PEM file of its private key.
	// They replace the certificates in Config. The app reloads the files when they change. Default: none.
	Cert string `env:"TLS_CERT"`
	Key  string `env:"TLS_KEY"`

	// Config holds further settings: certificates, client authentication and so on. Default: the defaults of package
	// crypto/tls, which accepts TLS 1.2 and later. If ALPN selects a protocol of NextProtos other than HTTP, the
	// connection is closed.
	Config *tls.Config

	// Domains are the host names for which Issuer obtains certificates. These replace the
	// certificates in Config. Default: none.
	Domains []string `env:"TLS_DOMAINS"`

	// Issuer obtains the certificates for Domains and renews them while the app serves. The
	// module github.com/dunlinhttp/dunlin/acme has an issuer. Default: none.
	Issuer TLSIssuer

	// Development serves TLS with a certificate for localhost, for development. The app stores the certificate in the
	// folder dunlin of [os.UserConfigDir] and makes it if it is missing. The app logs the commands that make this
	// machine trust the certificate. Default: false.
	Development bool `env:"TLS_DEVELOPMENT"`

	// HSTS makes clients use TLS. A request in clear text is redirected (308) to https on the same host, unless its
	// route is exempt, see [Route.ClearText]. With Domains, a request for any other host is answered with 400.
	// Answers over TLS have the header Strict-Transport-Security (RFC 6797) with this duration, rounded down to
	// seconds. Browsers then use only TLS for that time. Only another answer over TLS can shorten the time, so begin
	// with a few minutes.
	//
	// Behind a proxy that terminates TLS, ProxyConfig.Trusted must name the proxy, or every request is redirected forever.
	// Development suppresses the header, which would apply to everything on localhost. The header of package
	// middleware's SecureHeadersConfig, if set, takes precedence. Default: clear text is served.
	HSTS time.Duration
}

// Limits bounds the resources that clients may use: memory, concurrency, the size of requests, connections, and their
// slowness. A zero field selects its documented default.
type Limits struct {
	// Memory is the intended resident memory of the process, in bytes, including the program's own pages.
	// Default: the control group's limit (memory.max), else GOMEMLIMIT, else none. A control group's limit takes
	// precedence if it is lower, after deduction of the kernel's memory for sockets and page tables.
	//
	// The budget for clients is a quarter of the memory that the program itself does not use, at most 256 MiB. Without
	// a limit it is 256 MiB. It holds incomplete requests, bodies that an action reads completely, and answers that
	// clients have not read. When it is exhausted, the clients that hold most for longest are refused with 503, or
	// disconnected if their answer has begun. Clients that hold at most 80 KiB are served as before: larger holders
	// leave a quarter of the budget free for them. Bodies that can never fit are refused with 413. A small limit makes
	// a small budget: 16 MiB make one of about 2.5 MiB, for 40 bodies of 60 KB that arrive slowly at the same time.
	//
	// The limit also sets the default of MaxConcurrent, on the loop engine. From the first Serve to the end of Shutdown
	// it sets the pace of the garbage collector (GOGC and the runtime's memory limit), unless there is no limit and only
	// net/http serves. Settings of the program take precedence: GOGC in the environment, debug.SetGCPercent with a
	// value other than 100, debug.SetMemoryLimit while the app serves, or with a lower limit before that. Memory that
	// actions allocate is not limited.
	Memory ByteSize `env:"MEMORY_LIMIT"`

	// MaxMemoryPerConnection is the maximum part of the budget of Memory that one connection, or on net/http one
	// request, may use for bodies that are read completely. A larger body is answered with 413. A body that does not
	// fit beside other bodies of its HTTP/2 connection is answered with 503. Read buffers are additional, at most 256
	// KiB and twice MaxHead. Answers count only for MaxMemoryPerAddress. On HTTP/2 connections from trusted proxies
	// the limit is for each request. At least 128 KiB. Default: the budget.
	MaxMemoryPerConnection ByteSize

	// MaxMemoryPerAddress is the maximum part of the budget that all connections from one remote address may use
	// together, including answers. Beyond it, other requests of that address are ended, as described at Memory. If no
	// request can be ended, the answer is 503; a large body first waits for Timeouts.Memory. One answer may be larger if the
	// address holds nothing else. Addresses are those of MaxConnectionsPerAddress. At least 128 KiB. Default: the budget.
	MaxMemoryPerAddress ByteSize

	// MaxConcurrent is the maximum number of actions that may block at once on the loop engine. At the limit, requests
	// of routes whose actions are known to block wait in a queue. Requests of a [Route.Critical] may exceed the limit by
	// an eighth. Default: 10,000, or less under a memory limit: one for each 256 KiB that the program itself does not use,
	// but at least 16.
	//
	// Requests of a route whose actions have not blocked lately are not queued. Such a route may exceed the limit by one
	// action on each processor. All routes that block rarely may together exceed it by one. An action that waits for its
	// own client, to send the body or to read the answer, does not count. At most a quarter of MaxConcurrent actions may
	// wait for the rest of a body of up to 64 KiB; beyond that, such bodies are read before their actions start. A route
	// whose bodies are longer and arrive in parts counts as blocking. [Route.Limit] prevents that one slow route uses all.
	MaxConcurrent int

	// Adaptive lets the loop engine choose, between 4 and MaxConcurrent, how many requests of routes known to block are
	// served at once. The engine lowers the number if more concurrent requests take longer, because they wait for each
	// other or for the same database. Adaptive is for routes with similar durations and without streams.
	Adaptive bool `env:"ADAPTIVE_LIMIT"`

	// QueueTarget is the maximum time that requests may wait for their turn on the loop engine in an overload. An
	// overload begins when two things hold. The oldest request has waited longer than this, during ten times this time.
	// And the queue grows by requests on connections that were idle, or clients give up. In an overload, requests that
	// have waited longer are answered with 503, except for those of a [Route.Critical]. Negative: no request is refused.
	// Default: 10 ms.
	QueueTarget time.Duration

	// MaxBody is the maximum length of a request body, in bytes, for Bytes, Body and Decode. A longer body is answered
	// with 413. Groups and routes may set their own limit. Default: 4 MiB.
	MaxBody ByteSize

	// MaxFormFields is the maximum number of fields and files in a form. A larger form is answered with 413. The parts
	// of a multipart form may have ten times as many headers in total. math.MaxInt32 leaves only the limit on the body.
	// Default: 1,000.
	MaxFormFields int

	// MaxHead is the maximum length of a request head, in bytes, including the request line. A longer head is answered
	// with 431, or with 414 if the request line alone is longer. net/http answers both with 431, and allows 4 KiB more.
	// The read buffers of the loop engine have this size, but at least 64 KiB. At most 1 GiB. Default: 64 KiB.
	MaxHead ByteSize

	// MaxHeaders is the maximum number of header lines in a request. A request with more is answered
	// with 431. On net/http it limits the number of distinct names. Default: 100.
	MaxHeaders int

	// MaxRequestsPerConnection is the maximum number of requests on a connection, up to 65,535. The answer to the last
	// request has Connection: close. On HTTP/2 the client opens another connection. Default: no limit.
	MaxRequestsPerConnection int

	// MaxStreamsPerConnection is the maximum number of open streams on an HTTP/2 connection, up to 10,000. On the loop
	// engine a stream counts until its action has returned, even if the client has reset it. Default: 128.
	MaxStreamsPerConnection int

	// MaxConnections is the maximum number of open connections of each engine. At the limit, connections are closed to admit
	// clients from the system's backlog: idle connections, and connections of the address with the most of them that wait for
	// the rest of a head or a handshake. The loop engine also closes connections that wait for a body that no action reads.
	// A hijacked connection no longer counts on net/http; on the loop engine it counts until the handler returns. So handlers
	// must limit the number of their hijacked connections. Default: the limit on file descriptors (RLIMIT_NOFILE) less 5 %.
	MaxConnections int

	// MaxConnectionsPerLoop is the maximum number of open connections of an event loop. There is one loop for each processor.
	// If all loops are full, a new client is answered with 503 and disconnected. No effect on net/http. Default: no limit.
	MaxConnectionsPerLoop int

	// MaxConnectionsPerAddress is the maximum number of open connections from one remote address, on both engines together.
	// Further connections are closed, in clear text with a 503. All addresses of an IPv6 network of 64 bits count as one. Unix
	// sockets do not count. Behind a proxy all clients have the proxy's address, see ProxyConfig.Trusted. Default: no limit.
	MaxConnectionsPerAddress int

	// MinBodyRate is the minimum rate of a request body, in bytes a second, on average over each Timeouts.Body. A slower
	// client is answered with 408. An action that reads the body itself gets an error. A read deadline set by a
	// standard handler replaces the rate. Negative: at least one byte must arrive in each Timeouts.Body. Default: 256.
	MinBodyRate int

	// MinWriteRate is the minimum rate at which a client must read an answer, in bytes a second, on average over each
	// Timeouts.Write. A write deadline set by a standard handler replaces the rate. On net/http, a client of HTTP/1.1
	// must only read something in each Timeouts.Write. On HTTP/2 of net/http the rate is that of all streams of the
	// connection together, and the last 4 KiB that a handler writes must be read within one Timeouts.Write. Negative:
	// the client must read something in each Timeouts.Write. Default: 256.
	MinWriteRate int
}

// Timeouts limits the time that requests and connections may take. A zero field selects its documented default.
type Timeouts struct {
	// Action limits the time from the start of an action to the start of its answer. A later answer is discarded and
	// the client gets a 503, see Group.WithTimeout. Groups and routes may set their own timeout. Default: no limit.
	Action time.Duration `env:"TIMEOUT"`

	// Head limits the time from the first byte of a request head to its last byte. After that time the loop engine
	// answers with 408. net/http disconnects the client, with a 400 if the head has stopped within a line. Default: 10
	// s.
	Head time.Duration `env:"HEAD_TIMEOUT"`

	// Body is the period over which Limits.MinBodyRate is measured, and so about the longest pause of a client within
	// a request body. Only the time for which the server waits for more of the body counts. On net/http the period may
	// be twice as long. Default: 30 s.
	Body time.Duration `env:"BODY_TIMEOUT"`

	// Write is the period over which Limits.MinWriteRate is measured. A client that reads nothing of an answer for
	// about this long is disconnected. Only the time for which part of the answer waits for the client counts. On
	// net/http the period may be twice as long. On HTTP/2 only the streams end that wait for the client: for its window
	// to open, or for other streams of the client. Default: 30 s.
	Write time.Duration `env:"WRITE_TIMEOUT"`

	// Memory is the maximum time that a request waits until the budget of Limits.Memory has room for its body or its
	// large answer. After that time the request is answered with 503. Below a second, chunked bodies that are each
	// larger than a quarter of the budget block each other until one is refused. Default: 10 s.
	Memory time.Duration `env:"MEMORY_TIMEOUT"`

	// Idle is the maximum time that a connection may stay open without a request. Default: 75 s.
	Idle time.Duration `env:"IDLE_TIMEOUT"`

	// TCPKeepAlive is the time of silence after which the system probes the peer of a connection, and the interval
	// between probes. After nine probes without a reply the connection is closed and the context of its request ends.
	// Negative: no probes. Default: 15 s, as for a net.ListenConfig.
	TCPKeepAlive time.Duration
}

// ProxyConfig names the proxies in front of the app, and how they pass on the client's address. A zero field selects its
// documented default.
type ProxyConfig struct {
	// Trusted are the proxies whose statements about the client's address the app believes:
	// addresses, prefixes ("10.0.0.0/8"), and the words loopback, private (RFC 1918 and RFC 4193)
	// and unix (every peer on a unix socket). Request.Remote, LimitBy, the access log and Stats
	// then use the client's address, and Limits.MaxConnectionsPerAddress does not count the proxies'
	// connections. Name only addresses of proxies that set ForwardedHeader: every peer at a named
	// address can claim any client address. Default: no proxy is trusted.
	Trusted []string `env:"TRUSTED_PROXIES"`

	// ForwardedHeader is the header in which Trusted proxies name the client: Forwarded (RFC 7239), or a header with a
	// comma-separated list of addresses. Other headers are ignored, because a proxy may pass on such a header of a
	// client. Each proxy appends an address; the last address outside Trusted is the client's. Default:
	// X-Forwarded-For.
	ForwardedHeader string

	// Protocol requires connections from Trusted proxies to begin with a header of the PROXY protocol, version 1
	// or 2, which names the client. A connection that does not send it within Timeouts.Head is closed. Connections
	// from other peers must not have such a header.
	Protocol bool `env:"PROXY_PROTOCOL"`
}

// ProcessConfig controls what Run does to the process: its end, its restart, and the pace of its garbage collector. A zero
// field selects its documented default.
type ProcessConfig struct {
	// DrainGrace is the time for which Run continues to serve after a signal, while Readiness answers 503. Set it to the time that
	// the load balancer needs to detect the 503. Default: 0.
	DrainGrace time.Duration

	// DrainTimeout limits the time for which Run waits for running requests after DrainGrace. Default: 30 s.
	DrainTimeout time.Duration

	// DisableGCPacing leaves the garbage collector to the program. The app then does not set GOGC and the runtime's memory
	// limit, and does not return memory to the system when it becomes idle. The budget of Limits.Memory still applies.
	DisableGCPacing bool

	// DisableRestart leaves SIGHUP to the program or to the system's default, which ends the process. By default
	// SIGHUP makes Run restart the program, see Run.
	DisableRestart bool
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

// H2C selects whether HTTP/2 is accepted in clear text (h2c).
type H2C uint8

const (
	// H2COff is the default: clear text is served only over HTTP/1.1.
	H2COff H2C = iota
	// H2CPriorKnowledge also accepts HTTP/2 with prior knowledge (RFC 9113 section 3.3), which the first bytes of a connection
	// show. Requests for an upgrade to HTTP/2 are answered over HTTP/1.1.
	H2CPriorKnowledge
	// H2CUpgrade also accepts HTTP/2 from clients that request it by Upgrade: h2c (RFC 7540 section 3.2) in a request
	// without a body, such as curl --http2 and Java's HttpClient. Only the loop engine supports the upgrade. Do not set it
	// behind a proxy that forwards Upgrade without understanding it: after the upgrade the proxy no longer sees the
	// requests.
	H2CUpgrade
)

// UncleanPaths is a policy for paths with empty, «.» or «..» segments.
type UncleanPaths uint8

const (
	// UncleanPathsRedirect answers with a permanent redirect (308) to the clean path if a route matches
	// it, and with 404 otherwise.
	UncleanPathsRedirect UncleanPaths = iota
	// UncleanPathsRefuse answers with 400.
	UncleanPathsRefuse
	// UncleanPathsServe passes such a path unchanged to the standard handler that is mounted at the clean
	// path. Other routes redirect. The handler must not trust the path. (ServeMux and FileServer of
	// net/http clean it first.)
	UncleanPathsServe
)

// FromEnv sets the fields of config from environment variables. The name of a variable is DUNLIN_ and the tag env of its
// field: Timeouts.Head is DUNLIN_HEAD_TIMEOUT. For a field without a tag it is DUNLIN_ and the name of the field with the
// words in upper case: Limits.MaxBody is DUNLIN_MAX_BODY. Values are numbers, sizes (16MiB), durations (1m30s), true or
// false, names of engines, and lists separated by commas; H2C takes off, on or upgrade, RouteStats takes auto, on or off,
// and UncleanPaths takes redirect, refuse or serve. Empty variables are ignored. The error names every invalid variable,
// and every variable that begins with DUNLIN_ and names no field. After an error config is unchanged.
func FromEnv(config *Config) error {
	names := envconfig.Choices{
		reflect.TypeFor[H2C]():               {"off", "on", "upgrade"},
		reflect.TypeFor[stats.RoutePolicy](): {"auto", "on", "off"},
		reflect.TypeFor[UncleanPaths]():      {"redirect", "refuse", "serve"},
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
	setDefault(&c.Proxy.ForwardedHeader, "X-Forwarded-For")
	setDefault(&c.Limits.QueueTarget, 10*time.Millisecond)
	setDefault(&c.Limits.MaxBody, 4<<20)
	setDefault(&c.Limits.MaxFormFields, 1000)
	setDefault(&c.Limits.MaxHead, 64<<10)
	setDefault(&c.Limits.MaxHeaders, 100)
	setDefault(&c.Limits.MaxStreamsPerConnection, 128)
	setDefault(&c.Limits.MinBodyRate, 256)
	setDefault(&c.Limits.MinWriteRate, 256)
	setDefault(&c.Timeouts.Head, 10*time.Second)
	setDefault(&c.Timeouts.Body, 30*time.Second)
	setDefault(&c.Timeouts.Write, 30*time.Second)
	setDefault(&c.Timeouts.Memory, 10*time.Second)
	setDefault(&c.Timeouts.Idle, 75*time.Second)
	setDefault(&c.Timeouts.TCPKeepAlive, defaultKeepAlive)
	setDefault(&c.Process.DrainTimeout, 30*time.Second)
	for _, d := range []*time.Duration{
		&c.Limits.QueueTarget, &c.Timeouts.Action, &c.Timeouts.Head, &c.Timeouts.Body, &c.Timeouts.Write, &c.Timeouts.Memory, &c.Timeouts.Idle,
		&c.Timeouts.TCPKeepAlive,
		&c.Process.DrainGrace, &c.Process.DrainTimeout,
	} {
		*d = min(*d, longest)
	}
	return c
}

// defaultKeepAlive is also the default of package net: connections of net/http have it without a call.
const defaultKeepAlive = 15 * time.Second

// maxHead is the maximum of Limits.MaxHead, in bytes: offsets in a head are 32-bit numbers. minCap is
// the minimum of MaxMemoryPerConnection and MaxMemoryPerAddress, in bytes.
const maxHead, minCap = 1 << 30, 128 << 10

// longest is the maximum of all durations: a longer one, such as math.MaxInt64, would overflow the clock.
const longest = 365 * 24 * time.Hour

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxRequests is the maximum of Limits.MaxRequestsPerConnection: a connection of the loop engine counts its
// requests in 16 bits. maxStreams is the maximum of Limits.MaxStreamsPerConnection.
const maxRequests, maxStreams = 1<<16 - 1, 10_000

// validate returns an error for the first invalid setting.
func (c Config) validate() error {
	if err := cmp.Or(c.Limits.validate(), c.TLS.validate(), c.Proxy.validate()); err != nil {
		return err
	}
	switch t, p := c.Timeouts, c.Process; {
	case min(t.Action, t.Head, t.Body, t.Write, t.Memory, t.Idle) < 0:
		return fmt.Errorf("Config.Timeouts.Action, Head, Body, Write, Memory and Idle (%v, %v, %v, %v, %v, %v) must not be negative", t.Action, t.Head, t.Body, t.Write, t.Memory, t.Idle)
	case min(p.DrainGrace, p.DrainTimeout) < 0:
		return fmt.Errorf("Config.Process.DrainGrace and DrainTimeout (%v, %v) must not be negative", p.DrainGrace, p.DrainTimeout)
	case c.Engine > EngineStd:
		return fmt.Errorf("Config.Engine is %v: it must be EngineAuto, EngineLoop or EngineStd", c.Engine)
	case c.H2C > H2CUpgrade:
		return fmt.Errorf("Config.H2C is %d: it must be H2COff, H2CPriorKnowledge or H2CUpgrade", c.H2C)
	case c.RouteStats > stats.Off:
		return fmt.Errorf("Config.RouteStats is %d: it must be stats.Auto, stats.On or stats.Off", c.RouteStats)
	case c.UncleanPaths > UncleanPathsServe:
		return fmt.Errorf("Config.UncleanPaths is %d: it must be UncleanPathsRedirect, UncleanPathsRefuse or UncleanPathsServe", c.UncleanPaths)
	}
	return nil
}

func (l Limits) validate() error {
	switch {
	case l.Memory < 0:
		return fmt.Errorf("Config.Limits.Memory is %d: it must not be negative", l.Memory)
	case l.MaxMemoryPerConnection != 0 && l.MaxMemoryPerConnection < minCap || l.MaxMemoryPerAddress != 0 && l.MaxMemoryPerAddress < minCap:
		return fmt.Errorf("Config.Limits.MaxMemoryPerConnection and MaxMemoryPerAddress (%d, %d) must be 0 or at least %d",
			l.MaxMemoryPerConnection, l.MaxMemoryPerAddress, minCap)
	case l.MaxConcurrent < 0:
		return fmt.Errorf("Config.Limits.MaxConcurrent is %d: it must not be negative", l.MaxConcurrent)
	case l.MaxBody < 0:
		return fmt.Errorf("Config.Limits.MaxBody is %d: it must not be negative", l.MaxBody)
	case l.MaxFormFields < 1 || l.MaxFormFields > math.MaxInt32:
		return fmt.Errorf("Config.Limits.MaxFormFields is %d: it must be between 0 and %d", l.MaxFormFields, math.MaxInt32)
	case l.MaxHead < 512:
		return fmt.Errorf("Config.Limits.MaxHead is %d: fewer than 512 bytes would refuse ordinary requests", l.MaxHead)
	case l.MaxHead > maxHead:
		return fmt.Errorf("Config.Limits.MaxHead is %d: it must be at most %d (1 GiB)", l.MaxHead, maxHead)
	case l.MaxHeaders < 1:
		return fmt.Errorf("Config.Limits.MaxHeaders is %d: it must not be negative", l.MaxHeaders)
	case l.MaxRequestsPerConnection < 0 || l.MaxRequestsPerConnection > maxRequests:
		return fmt.Errorf("Config.Limits.MaxRequestsPerConnection is %d: it must be between 0 and %d", l.MaxRequestsPerConnection, maxRequests)
	case l.MaxStreamsPerConnection < 1 || l.MaxStreamsPerConnection > maxStreams:
		return fmt.Errorf("Config.Limits.MaxStreamsPerConnection is %d: it must be between 1 and %d", l.MaxStreamsPerConnection, maxStreams)
	case min(l.MaxConnections, l.MaxConnectionsPerLoop, l.MaxConnectionsPerAddress) < 0:
		return fmt.Errorf("Config.Limits.MaxConnections, MaxConnectionsPerLoop and MaxConnectionsPerAddress (%d, %d, %d) must not be negative",
			l.MaxConnections, l.MaxConnectionsPerLoop, l.MaxConnectionsPerAddress)
	}
	return nil
}

func (t TLSConfig) validate() error {
	switch {
	case t.Cert == "" != (t.Key == ""):
		return fmt.Errorf("Config.TLS.Cert is %q and Key %q: set both or neither", t.Cert, t.Key)
	case t.Development && t.Cert != "":
		return fmt.Errorf("Config.TLS.Development makes a certificate: Cert is %q and must be empty", t.Cert)
	case len(t.Domains) > 0 && t.Issuer == nil:
		return fmt.Errorf("Config.TLS.Domains is %q: it needs Issuer, such as acme.New(acme.Config{...}) of the module github.com/dunlinhttp/dunlin/acme", t.Domains)
	case t.Issuer != nil && len(t.Domains) == 0:
		return errors.New("Config.TLS.Issuer is set: it needs Domains, the names to get certificates for")
	case t.Issuer != nil && (t.Cert != "" || t.Development):
		return errors.New("Config.TLS.Domains get certificates: Cert must be empty and Development false")
	case t.Addr != "" && !t.served():
		return fmt.Errorf("Config.TLS.Addr is %q: it needs Cert and Key, or Config, Domains or Development", t.Addr)
	case t.HSTS < 0 || t.HSTS > 0 && t.HSTS < time.Second:
		return fmt.Errorf("Config.TLS.HSTS is %v: it must be at least a second; to make browsers forget it use SecureHeadersConfig of package middleware", t.HSTS)
	}
	return nil
}

func (p ProxyConfig) validate() error {
	if _, err := clientaddr.ParseTrust(p.Trusted); err != nil {
		return fmt.Errorf("Config.Proxy.Trusted: %w", err)
	}
	switch {
	case semantics.CheckField(p.ForwardedHeader, "") != nil:
		return fmt.Errorf("Config.Proxy.ForwardedHeader is %q: it is not a header name", p.ForwardedHeader)
	case p.Protocol && len(p.Trusted) == 0:
		return errors.New("Config.Proxy.Protocol needs Trusted: the header is accepted from trusted proxies only")
	}
	return nil
}
