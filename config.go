package dunlin

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// Config holds the settings of an App. The zero value of every field stands for
// its documented default.
type Config struct {
	// Engine says what serves connections: EngineAuto (the default) takes the
	// loop engine where it can run and net/http elsewhere.
	Engine Engine

	// Addr is the TCP address that Run listens on: in clear text, unless there is
	// a certificate and no TLSAddr. Default: ":8080".
	Addr string

	// TLSAddr is the TCP address that Run serves by TLS beside Addr. It needs a
	// certificate. Default: none.
	TLSAddr string

	// TLSCert and TLSKey name the PEM files of the certificate chain and its key.
	// They take the place of the certificates in TLS, and are read again when
	// they change. Default: none.
	TLSCert, TLSKey string

	// TLS holds the settings of TLS: certificates, client authentication and so
	// on. Default: those of package crypto/tls, which takes TLS 1.2 and later. Clients that agree to one of
	// its NextProtos that is not HTTP are disconnected.
	TLS *tls.Config

	// TLSDomains are the names to get certificates for, from an authority that TLSIssuer asks. They are
	// served by TLS from then on, in place of the certificates in TLS. Default: none.
	TLSDomains []string

	// TLSIssuer gets the certificates for TLSDomains and renews them while the app serves: by
	// the module github.com/dunlinhttp/dunlin/acme, say. Default: none.
	TLSIssuer TLSIssuer

	// TLSDevelopment serves by TLS with a certificate for localhost, for development. It is made
	// when there is none, and kept in the folder dunlin of [os.UserConfigDir]. The commands that
	// have this machine trust it are logged. Default: false.
	TLSDevelopment bool

	// HSTS has clients come by TLS only: what is asked in clear text is redirected (308) to
	// https, where routes do not say otherwise, see [Route.ClearText]: to the host that the request names, with TLSDomains only if
	// that is one of them, and else answered with 400. And answers by TLS tell browsers
	// to come by TLS from the beginning for so long (Strict-Transport-Security, RFC 6797), in whole seconds.
	// They can be told otherwise by TLS only: begin with a few minutes. Behind a proxy that speaks TLS for
	// the server TrustedProxies must name it, or all requests are redirected for ever. With
	// TLSDevelopment browsers are told nothing, since that would hold for all that is served on
	// localhost. See also package middleware's SecurityConfig, which goes before it.
	// Default: clear text is served.
	HSTS time.Duration

	// H2C also takes HTTP/2 in clear text, from clients that know beforehand
	// (RFC 9113, section 3.3): what a connection begins with decides. Clients that would
	// upgrade from HTTP/1.1 are answered by HTTP/1.1, unless H2CUpgrade says otherwise.
	H2C bool

	// H2CUpgrade also takes HTTP/2 from clients that ask for it by Upgrade (RFC 7540, section 3.2), in a request without a body:
	// curl --http2, Java's HttpClient. Only the loop engine does. Leave it off behind a proxy, unless that removes
	// Upgrade: one that passes it on, not knowing what it means, no longer sees what its clients ask for. It implies H2C.
	H2CUpgrade bool

	// Ready, if set, is called when a listener is being served, with its
	// address and the engine that serves it.
	Ready func(addr net.Addr, engine Engine)

	// Logger receives failures, panics and the engine's own events. Its handler may block, and is called on a goroutine of
	// its own: what an action brings about, such as its panic, waits for it, but for 50 ms at most, and not at all while the
	// handler is slow; everything else, such as what is refused, never does. Up to 1,024 records wait; what finds no room is
	// dropped and counted, by a record a second and in Stats. What middleware and actions log by themselves is theirs.
	// Default: slog.Default() at the time of New.
	Logger *slog.Logger

	// MemoryLimit is how much memory the process is to have resident, the
	// program's own pages included. A quarter of what it leaves, at most 256 MiB, is
	// the budget for what clients make the server hold: requests that are not
	// complete, bodies that an action reads in whole, answers that are not taken.
	// When it is used up, those clients make room who hold most for longest: they are
	// refused with 503, or cut off if their answer has begun. Clients that hold no more than a
	// fair share, 80 KiB or more, are served as before; to those who hold less than that a
	// quarter of the budget is left by bodies of others. Bodies that could never fit are
	// refused with 413. A small limit leaves little: of 16 MiB the budget is about 2.5 MiB, and 40 bodies of 60 KB
	// that come slowly at once fit, while all others are answered with 503. From the limit follow also, on the loop engine, the default of
	// MaxConcurrent; and on both engines the pace of the garbage collector (GOGC and the runtime's memory
	// limit, from the first Serve to the end of Shutdown), without a limit of GOGC alone where only net/http
	// serves. What the program sets itself goes
	// before it: GOGC in the environment, or debug.SetGCPercent with anything but 100, and while
	// the app serves also debug.SetMemoryLimit; before that, only a tighter memory limit
	// does. Memory that actions hold is theirs to bound.
	// Default: the control group's limit (memory.max), else GOMEMLIMIT, else none,
	// with a budget of 256 MiB. A control group that leaves less than this, beside what
	// the kernel needs in it for sockets and page tables, goes before it.
	MemoryLimit ByteSize

	// MaxMemoryPerConnection bounds what one connection, or on net/http one request, may make the server hold of that
	// budget: a larger body that is read in whole is answered with 413, one that does not fit beside others of an HTTP/2
	// connection with 503. What reading takes is beside it, 256 KiB and twice MaxHead at most, and answers count for
	// MaxMemoryPerAddress only. Of trusted proxies' HTTP/2 it bounds each request. At least 128 KiB. Default: the budget.
	MaxMemoryPerConnection ByteSize

	// MaxMemoryPerAddress bounds what all connections from one remote address may make the server hold of the
	// budget together, answers included. Beyond it others of that address make room, as MemoryLimit says; who
	// finds none gets a 503, for a large body after ten seconds. One answer may be larger if the address holds
	// nothing else. Addresses are those of MaxConnectionsPerAddress. At least 128 KiB. Default: the whole budget.
	MaxMemoryPerAddress ByteSize

	// MaxConcurrent is how many actions may wait at once on the loop engine: those of routes known to block, and those that
	// are found to. Further requests of such routes wait for their turn; Critical ones may be an eighth more. A route of
	// which no call has blocked meanwhile is not held up, and so may add the one that shows it does, on each processor;
	// those that block seldom add one in all. What waits for its client, for its body or to take the answer, is not counted;
	// but of actions that wait for the rest of a body of up to 64 KiB there are at most a quarter as many: beyond that, such
	// bodies are complete before their actions begin. A route of longer bodies that do not come at once is held up like one
	// that blocks; Limit keeps a route that hangs from taking all places. Default: 10,000, or fewer under a memory limit: one
	// for each 256 KiB that it leaves, and 16 at the least.
	MaxConcurrent int

	// AdaptiveLimit lets the loop engine find, between 4 and MaxConcurrent, how many requests of routes known to block are
	// served at once: fewer when they take longer the more there are, because they wait for each other or for the same
	// database. It suits routes that take about equally long, and no streams.
	AdaptiveLimit bool

	// QueueTarget is how long a request may wait for its turn on the loop engine while more come than can be served. When
	// all have waited longer for ten times as long, and it is not just the same clients coming back, later ones are
	// answered with 503 until that is over; see Route.Critical. A negative one refuses none. Default: 10 ms.
	QueueTarget time.Duration

	// MaxBody is the largest request body, in bytes, that Bytes, Body and
	// Decode accept; more is answered with 413. Groups and routes may set their
	// own. Default: 4 MiB.
	MaxBody int64

	// MaxFormFields is how many fields and files a form may have; more is answered
	// with 413. The parts of a multipart form may have ten times as many headers in
	// all. math.MaxInt32 stands for no limit but that on the body. Default: 1,000.
	MaxFormFields int

	// MaxHead is the largest request head, in bytes, request line included;
	// more is answered with 431 (414 when the request line alone is longer;
	// net/http says 431 to both, and grants 4 KiB more). The loop engine's read
	// buffers are as large, and 64 KiB at least. At most 1 GiB. Default: 64 KiB.
	MaxHead int

	// MaxHeaders is how many header lines a request may have; more is answered with
	// 431. Net/http knows only the names: there it bounds those. Default: 100.
	MaxHeaders int

	// MaxRequestsPerConnection is how many requests a connection may carry, up to
	// 65,535; the answer to the last one says Connection: close. On HTTP/2 it has
	// the client open another connection. Default: no limit.
	MaxRequestsPerConnection int

	// MaxConnections bounds the connections that are open at once, those of the loop
	// engine and those of net/http each for themselves. At the bound further clients
	// wait, in the system's backlog, until a connection closes. One that was hijacked is
	// its handler's to bound, here and in the two fields below: on net/http it counts no
	// longer, on the loop engine only until the handler returns. Default: no bound but
	// that on file descriptors.
	MaxConnections int

	// MaxConnectionsPerLoop bounds the open connections of each event loop, of which
	// there is one for each processor. A client that finds all of them full is not
	// made to wait, but answered with 503 and disconnected at once. It has no effect
	// on net/http. Default: no bound.
	MaxConnectionsPerLoop int

	// MaxConnectionsPerAddress bounds the open connections from one remote address,
	// on both engines together. The addresses of an IPv6 network of 64 bits count as
	// one; unix sockets have none. A client beyond it is answered with 503, by TLS
	// with nothing, and disconnected at once. Behind a proxy all clients have the
	// proxy's address, see TrustedProxies. Default: no bound.
	MaxConnectionsPerAddress int

	// Timeout is how long an action may take until its answer begins; a later
	// one is discarded, and the client gets a 503, see Group.Timeout. Groups and
	// routes may set their own. Default: no limit.
	Timeout time.Duration

	// HeadTimeout is how long a client may take to send a request head, from its
	// first byte to its last; then the loop engine answers with 408, and net/http
	// disconnects it, with a 400 if it has stopped within a line. Default: 10 s.
	HeadTimeout time.Duration

	// BodyTimeout is the time over which MinBodyRate is judged, and so about how
	// long a client may pause in a request body. Only the time counts in which the
	// server waits for more, not that in which the action does something else. On
	// net/http it may be twice as long. Default: 30 s.
	BodyTimeout time.Duration

	// MinBodyRate is how many bytes a second of a request body must come, on
	// average over each BodyTimeout. A slower client is answered with 408; where
	// the action reads the body itself, by the error that it gets. A standard
	// handler that sets a read deadline has that instead. Default: 256. Negative:
	// something must come at all.
	MinBodyRate int

	// WriteTimeout is the time over which MinWriteRate is judged, and so about how
	// long a client may take nothing of an answer; then its connection is cut. Only
	// the time counts in which part of the answer waits for the client. On net/http
	// it may be twice as long. Of HTTP/2 it ends each stream that waits for the client to
	// let out more of it, or for others of its own to be taken. Default: 30 s.
	WriteTimeout time.Duration

	// MinWriteRate is how many bytes a second of an answer a client must take, on
	// average over each WriteTimeout. A standard handler that sets a write deadline
	// has that instead. On net/http a client must take something at all, as its
	// server sees by the room that the system has for more; there all that a connection of HTTP/2 is
	// sent counts, and the last 4 KiB of what a handler writes are to be taken in one WriteTimeout.
	// Default: 256. Negative: something must be taken at all.
	MinWriteRate int

	// IdleTimeout is how long a connection may stay open without a request.
	// Default: 75 s.
	IdleTimeout time.Duration

	// TCPKeepAlive is how long a client may be silent before the system asks its
	// system whether it is still there, and how long it waits for each reply. After
	// nine without one the connection is closed, and the context of a request that is
	// being answered ends: a client that has vanished without a word is not waited for
	// for ever. Negative: it is never asked. Default: 15 s, as of a net.ListenConfig.
	TCPKeepAlive time.Duration

	// DrainGrace is how long Run goes on serving, after a signal, while Readiness
	// says that no more should be sent: as long as the balancer in front takes to
	// notice. Default: 0.
	DrainGrace time.Duration

	// DrainTimeout is how long Run waits, after DrainGrace, for running requests
	// to end. Default: 30 s.
	DrainTimeout time.Duration

	// TrustedProxies are those in front of the server whose word on the address of a client is
	// taken: addresses, prefixes ("10.0.0.0/8"), and the words loopback, private (RFC 1918 and
	// RFC 4193) and unix (whoever connects to a unix socket). Request.Remote, LimitBy, the access
	// log and Stats then have the client's address; MaxConnectionsPerAddress does not count
	// the proxies' own connections. Name only proxies that set the header themselves: who else
	// reaches the server from such an address can claim any. Default: nobody is trusted.
	TrustedProxies []string

	// ForwardedHeader is where TrustedProxies write who has asked them: Forwarded (RFC 7239),
	// or a header with addresses separated by commas. Others are not looked at, since a proxy
	// passes on what clients put there. Each proxy adds an address at the end; the client's is
	// the last that is not one of TrustedProxies. Default: X-Forwarded-For.
	ForwardedHeader string

	// ProxyProtocol says that connections of TrustedProxies begin with a header of the PROXY
	// protocol, version 1 or 2, which says whose they are. One that does not, within
	// HeadTimeout, is closed. Those of others have none, and count as theirs.
	ProxyProtocol bool

	// DisableGCPacing leaves GOGC, the runtime's memory limit and the return of memory
	// by a process that has become quiet to the program, see MemoryLimit. The budget for what
	// clients make the server hold is kept all the same.
	DisableGCPacing bool

	// DisableProgramDrop keeps the pages of the program's file mapped into memory that
	// only starting, or a burst, has needed. By default the system may take them back,
	// soon after the first Serve and when the process becomes quiet; what is used
	// again comes from the system's cache. It has no effect in a control group with a
	// memory limit, and elsewhere than on Linux.
	DisableProgramDrop bool

	// DisableDescriptorGrowth leaves the size of the process's table of descriptors to the
	// system. By default the loop engine has it enlarged ahead of need, for 4,096
	// descriptors at first (32 KB of the kernel's memory), since connections wait for up to
	// 25 ms each time the system does it.
	DisableDescriptorGrowth bool

	// DisableRestart has Run leave SIGHUP to the program or to its default, which ends the
	// process. By default it starts the program anew, see Run.
	DisableRestart bool

	// RouteStats says when requests are counted and timed by route, for Stats. It
	// costs a request some ten nanoseconds. Default: StatsAuto.
	RouteStats RouteStatsPolicy

	// DirtyPaths says what becomes of a path with empty, «.» or «..» segments,
	// none of which a route ever matches. Routes may have their own, see
	// Route.DirtyPaths. Default: RedirectDirty.
	DirtyPaths DirtyPaths

	// RedirectSlash redirects a path that no route matches to the same path with
	// a slash more or less at its end, when a route matches that. Default: such
	// a path is answered with 404.
	RedirectSlash bool
}

// Engine names what serves connections.
type Engine uint8

const (
	EngineAuto Engine = iota // the loop engine where it can run, else net/http
	EngineLoop               // event loops: Linux
	EngineStd                // net/http
)

// String returns the engine's name as UnmarshalText reads it.
func (e Engine) String() string {
	switch e {
	case EngineAuto:
		return "auto"
	case EngineLoop:
		return "loop"
	case EngineStd:
		return "std"
	}
	return fmt.Sprintf("Engine(%d)", uint8(e))
}

// MarshalText returns the engine's name, so that it can stand in a
// configuration file.
func (e Engine) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads auto, loop or std: with it an Engine can be a flag
// (flag.TextVar).
func (e *Engine) UnmarshalText(text []byte) error {
	for _, known := range []Engine{EngineAuto, EngineLoop, EngineStd} {
		if string(text) == known.String() {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("dunlin: engine %q is none of auto, loop and std", text)
}

// DirtyPaths is a policy for paths with empty, «.» or «..» segments.
type DirtyPaths uint8

const (
	// RedirectDirty answers with a permanent redirect (308) to the clean path
	// when a route matches that, else with 404.
	RedirectDirty DirtyPaths = iota
	// RefuseDirty answers with 400.
	RefuseDirty
	// ServeDirty passes such a path on, as it was sent, to the standard handler that is
	// mounted where the clean path leads. Other routes redirect. The handler must
	// not trust the path: net/http's ServeMux cleans it first, and FileServer looks at the
	// clean one.
	ServeDirty
)

// RouteStatsPolicy says when requests are counted by route.
type RouteStatsPolicy uint8

const (
	// StatsAuto counts from when the App first serves a listener. An App that is
	// used as a handler only, by its ServeHTTP, counts nothing.
	StatsAuto RouteStatsPolicy = iota
	StatsOn                    // always
	StatsOff                   // never
)

// withDefaults returns the config with its zero fields filled in.
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

// defaultKeepAlive is that of package net, too: net/http's connections have it without a call.
const defaultKeepAlive = 15 * time.Second

// mostHead bounds MaxHead, in bytes: places in a head are kept as 32-bit numbers. leastCap bounds
// MaxMemoryPerConnection and MaxMemoryPerAddress.
const mostHead, leastCap = 1 << 30, 128 << 10

// longest stands for all durations beyond it, such as math.MaxInt64: the clock would go around.
const longest = 365 * 24 * time.Hour

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// mostRequests is the highest MaxRequestsPerConnection: connections of the loop
// engine count in 16 bits.
const mostRequests = 1<<16 - 1

// validate names the first setting that cannot hold.
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
	case min(c.MaxConnections, c.MaxConnectionsPerLoop, c.MaxConnectionsPerAddress) < 0:
		return fmt.Errorf("Config.MaxConnections, MaxConnectionsPerLoop and MaxConnectionsPerAddress (%d, %d, %d) must not be negative",
			c.MaxConnections, c.MaxConnectionsPerLoop, c.MaxConnectionsPerAddress)
	case min(c.Timeout, c.HeadTimeout, c.BodyTimeout, c.WriteTimeout, c.IdleTimeout, c.DrainTimeout) < 0:
		return fmt.Errorf("Config.Timeout, HeadTimeout, BodyTimeout, WriteTimeout, IdleTimeout and DrainTimeout (%v, %v, %v, %v, %v, %v) must not be negative",
			c.Timeout, c.HeadTimeout, c.BodyTimeout, c.WriteTimeout, c.IdleTimeout, c.DrainTimeout)
	case c.DrainGrace < 0:
		return fmt.Errorf("Config.DrainGrace is %v: it must not be negative", c.DrainGrace)
	case c.TLSCert == "" != (c.TLSKey == ""):
		return fmt.Errorf("Config.TLSCert is %q and TLSKey %q: one is of no use without the other", c.TLSCert, c.TLSKey)
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
		return fmt.Errorf("Config.HSTS is %v: it must be a second at least; SecurityConfig of package middleware ends what browsers were told", c.HSTS)
	case http1.CheckField(c.ForwardedHeader, "") != nil:
		return fmt.Errorf("Config.ForwardedHeader is %q: that is no name of a header", c.ForwardedHeader)
	case c.ProxyProtocol && len(c.TrustedProxies) == 0:
		return fmt.Errorf("Config.ProxyProtocol needs Config.TrustedProxies: its header is taken of them only")
	case c.RouteStats > StatsOff:
		return fmt.Errorf("Config.RouteStats is %d: it must be StatsAuto, StatsOn or StatsOff", c.RouteStats)
	case c.DirtyPaths > ServeDirty:
		return fmt.Errorf("Config.DirtyPaths is %d: it must be RedirectDirty, RefuseDirty or ServeDirty", c.DirtyPaths)
	}
	return nil
}
