package exchange

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A Server holds the settings that an adapter must apply and the state that all adapters share. It is complete before the first
// connection; later only its counters change.
type Server struct {
	Settings

	Pipeline Pipeline
	Handler  http.Handler // the app as a handler of net/http

	Log       *slog.Logger         // never blocks
	Shed      *admission.Shed      // counts and logs refusals and evictions
	Addresses *admission.Addresses // connections by remote address; nil: no limit
	Budget    *memory.Budget       // memory that clients make the server hold
	Proxies   *clientaddr.Source   // trusted proxies; nil: none

	Unmatched Route // for requests without a route

	Counting atomic.Bool   // count requests by route; set before the first connection
	Refused  atomic.Uint64 // unreadable requests
}

// ServerKey is the key under which PerApp of package ext returns the *Server of an app, for additional adapters.
type ServerKey struct{}

// Settings are the parts of the configuration that adapters apply, including defaults.
type Settings struct {
	HeadTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration

	TCPKeepAlive time.Duration // negative: none
	MinBodyRate  int           // bytes per second; negative: none

	MinWriteRate int           // bytes per second of answers; negative: none
	QueueTarget  time.Duration // how long requests may wait under overload; negative: unlimited

	MaxBody    int64 // of a request, in bytes; a Route may have another limit
	MaxHead    int   // of a request, in bytes
	MaxHeaders int   // number of field lines of a request

	MaxRequestsPerConnection int // 0: unlimited
	MaxStreamsPerConnection  int // concurrent streams of HTTP/2
	MaxConnections           int // 0: unlimited
	MaxConnectionsPerAddress int // 0: unlimited
	MaxConnectionsPerLoop    int // 0: unlimited

	ProxyHeader time.Duration // time limit for the PROXY protocol header of trusted proxies; 0: proxies send no header

	H2C           bool // accept HTTP/2 in clear text
	H2CUpgrade    bool // accept upgrades from HTTP/1.1 to HTTP/2 in clear text
	AdaptiveLimit bool // reduce concurrency below the limit if that is faster

	Counts Counts // for tests
}

// Counts replaces the counts by which an engine detects whether actions wait. If a function is nil, the engine uses the count of
// the system or the runtime.
type Counts struct {
	Switches func() int64 // voluntary context switches of the calling thread
	Pauses   func() int64 // pauses of the program for garbage collections
}

// BackgroundCost is the charge, in bytes, for an answer that continues in the background: for the goroutine and its memory on the
// heap.
const BackgroundCost = 8 << 10

// TrustedProxies returns the trusted proxies, or nil.
func (s *Server) TrustedProxies() *clientaddr.Trust {
	if s.Proxies == nil {
		return nil
	}
	return s.Proxies.Trust
}

// Client returns the client address of a request: the remote address of the connection or, if that is a trusted proxy, the
// address that the proxy reports.
func (s *Server) Client(w Wire) netip.AddrPort {
	peer := w.Remote()
	if s.Proxies == nil || !s.Proxies.Trusts(peer.Addr()) {
		return peer
	}
	return s.Proxies.Client(peer, w.List(s.Proxies.Header))
}

// Secure reports whether the client of a request used TLS, to this server or to a trusted proxy.
func (s *Server) Secure(w Wire) bool {
	return w.Secure() || s.Proxies != nil && s.Proxies.Trusts(w.Remote().Addr()) && s.Proxies.Secure(w.List(s.Proxies.SchemeHeader()))
}

// NoteSlow counts a slow client that is cut off, and logs it at a limited rate.
func (s *Server) NoteSlow(reason admission.Reason, remote netip.AddrPort, what string) {
	if n, due := s.Shed.Note(reason); due {
		s.Log.Warn("slow clients cut off", "reason", what, "latest", remote, "count", n)
	}
}

// NoteSlowReader is NoteSlow for a client that stopped reading an answer.
func (s *Server) NoteSlowReader(remote netip.AddrPort) {
	s.NoteSlow(admission.SlowReader, remote, fmt.Sprintf("the client read nothing of an answer for %v", s.WriteTimeout))
}

// NoteEnded counts the eviction of a large holder, and logs it at a limited rate.
func (s *Server) NoteEnded(remote netip.AddrPort, account *memory.Account) {
	if account.Met().Capped() {
		s.noteCap("the clients that hold the most memory are refused or cut off", "latest", remote, "held", account.Held())
	} else if n, due := s.Shed.Note(admission.LargestHolder); due {
		s.Log.Warn("the "+s.Budget.String()+" is used up: the clients that hold the most memory for the longest time are refused or cut off",
			"latest", remote, "held", account.Held(), "small", memory.Small, "count", n)
	}
}

// NoteNoMemory counts a refusal because the memory budget is used up or a cap is reached, and logs it at a limited rate.
func (s *Server) NoteNoMemory(what, route string, met memory.Cap) {
	if met.Capped() {
		s.noteCap(what+" are refused", "route", route)
	} else if n, due := s.Shed.Note(admission.NoMemory); due {
		s.Log.Warn("the "+s.Budget.String()+" is used up: "+what+" are refused", "route", route, "count", n)
	}
}

// noteCap counts and logs, at a limited rate, that a connection or an address holds its maximum.
func (s *Server) noteCap(what string, args ...any) {
	if n, due := s.Shed.Note(admission.MemoryCap); due {
		s.Log.Warn("a connection or an address is at its memory limit: "+what, append(args, "count", n)...)
	}
}
