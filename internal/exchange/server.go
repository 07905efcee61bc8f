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
)

// A Server is what an adapter knows of the server that it is a part of: settings, and what
// all adapters share. It is complete before the first connection, and does not change
// but for its counters.
type Server struct {
	Settings

	Pipeline Pipeline
	Handler  http.Handler // the app, as net/http knows it

	Log       *slog.Logger         // never blocks
	Shed      *admission.Shed      // what was refused or cut off, and why
	Addresses *admission.Addresses // connections by remote address; nil: no bound
	Budget    *admission.Budget    // memory for what clients make the server hold
	Holders   *admission.Holders   // who holds what of it
	Proxies   *clientaddr.Source   // those in front that are trusted; nil: none

	Unmatched Route // stands for requests that no route takes

	Counting atomic.Bool   // requests are counted by route; set before the first connection
	Refused  atomic.Uint64 // requests that could not be read
}

// ServerKey is the key under which App.Extension has the *Server of an app, for adapters
// beside those that the app has itself.
type ServerKey struct{}

// Settings are those of the configuration that adapters give effect to, with their
// defaults filled in.
type Settings struct {
	HeadTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration

	TCPKeepAlive time.Duration // below 0: none
	MinBodyRate  int           // bytes a second; below 0: none

	MinWriteRate int           // likewise, of answers
	QueueTarget  time.Duration // how long requests may wait when there are too many; below 0: for ever

	MaxBody    int64 // of a request, in bytes, unless its route says otherwise
	MaxHead    int   // of a request, in bytes
	MaxHeaders int   // of a request, in lines

	MaxRequestsPerConnection int // 0: no bound
	MaxStreamsPerConnection  int // of HTTP/2, at once
	MaxConnections           int // 0: no bound
	MaxConnectionsPerAddress int // 0: no bound
	MaxConnectionsPerLoop    int // 0: no bound

	ProxyHeader time.Duration // within which those of Proxies send a PROXY protocol header; 0: they have none

	H2C           bool // HTTP/2 is also taken in clear text
	H2CUpgrade    bool // and from HTTP/1.1, by Upgrade
	AdaptiveLimit bool // fewer requests at once than may be, where that is quicker

	CountSwitches func() int64 // of the calling thread, voluntary ones; nil: as the system counts. For tests
}

// BackgroundCost is what is charged for an answer that goes on in the background, in bytes: about what its goroutine takes, and what it
// has on the heap.
const BackgroundCost = 8 << 10

// TrustedProxies returns those in front that are trusted; nil for none.
func (s *Server) TrustedProxies() *clientaddr.Trust {
	if s.Proxies == nil {
		return nil
	}
	return s.Proxies.Trust
}

// Client returns the address of the client whose request w offers: that of the other end of
// its connection or, if that is a trusted proxy's, the one that it says.
func (s *Server) Client(w Wire) netip.AddrPort {
	peer := w.Remote()
	if s.Proxies == nil || !s.Proxies.Trusts(peer.Addr()) {
		return peer
	}
	return s.Proxies.Client(peer, w.List(s.Proxies.Header))
}

// Secure reports whether the client whose request w offers has asked by TLS.
func (s *Server) Secure(w Wire) bool {
	return w.Secure() || s.Proxies != nil && s.Proxies.Trusts(w.Remote().Addr()) && s.Proxies.Secure(w.List(s.Proxies.SchemeHeader()))
}

// NoteSlow counts a client that is cut off, and logs it now and then.
func (s *Server) NoteSlow(reason admission.Reason, remote netip.AddrPort, what string) {
	if n, due := s.Shed.Note(reason); due {
		s.Log.Warn("slow clients cut off", "reason", what, "latest", remote, "count", n)
	}
}

// NoteSlowReader is NoteSlow for a client that took nothing of an answer.
func (s *Server) NoteSlowReader(remote netip.AddrPort) {
	s.NoteSlow(admission.SlowReader, remote, fmt.Sprintf("nothing of an answer was taken for %v", s.WriteTimeout))
}

// NoteEnded counts, and logs now and then, that one who held much is ended to make room.
func (s *Server) NoteEnded(remote netip.AddrPort, account *admission.Account) {
	if account.Met().Capped() {
		s.noteCap("those are refused or cut off who hold most", "latest", remote, "held", account.Held())
	} else if n, due := s.Shed.Note(admission.LargestHolder); due {
		s.Log.Warn("the "+s.Budget.String()+" is used up: those who hold most for longest are refused or cut off",
			"latest", remote, "held", account.Held(), "fair", s.Holders.Fair(), "count", n)
	}
}

// NoteNoMemory counts, and logs now and then, that something is refused for want of memory, or
// because of a cap.
func (s *Server) NoteNoMemory(what, route string, met admission.Cap) {
	if met.Capped() {
		s.noteCap(what+" are refused", "route", route)
	} else if n, due := s.Shed.Note(admission.NoMemory); due {
		s.Log.Warn("the "+s.Budget.String()+" is used up: "+what+" are refused", "route", route, "count", n)
	}
}

// noteCap counts, and logs now and then, that a connection or an address holds as much as it may.
func (s *Server) noteCap(what string, args ...any) {
	if n, due := s.Shed.Note(admission.MemoryCap); due {
		s.Log.Warn("one connection or address holds as much memory as it may: "+what, append(args, "count", n)...)
	}
}
