package admission

import (
	"sync/atomic"
	"time"
)

// A Reason is a limit that a client has reached. Each reason has a counter, so that refusals are visible while they happen.
type Reason uint8

const (
	QueueTime      Reason = iota // requests waited longer than the target: 503
	RouteLimit                   // a route had as many requests in flight as its limit allows: 503
	KeyLimit                     // one client had as many requests in flight as the limit allows: 429
	NoMemory                     // the budget had no room for a request: 503
	LargestHolder                // the costliest holder was refused or cut off for memory
	MemoryCap                    // a connection or an address reached its memory limit
	AcceptPaused                 // no connections were accepted: no descriptors, or MaxConnections reached
	IdleDropped                  // an idle connection was closed to make room for others
	AddressLimit                 // an address was at its limit of connections
	LoopLimit                    // all loops were at their limit of connections
	SlowHead                     // a request head arrived below the minimum rate
	SlowBody                     // a request body arrived below the minimum rate
	SlowReader                   // a response was read below the minimum rate
	HandshakeQueue               // TLS handshakes waited longer than the target
	SlowHandshake                // a client did not complete its handshake in time, or delayed others
	TLSError                     // a client violated TLS, or refused the server's parameters
	ClearText                    // a client sent clear text to a TLS port
	ProxyHeader                  // a proxy's connection began without a valid PROXY protocol header

	// HTTP/2 clients sent too many frames that serve no request. The order is that of the reasons of package http2.
	H2Resets
	H2Faults
	H2Refusals
	H2Continuations
	H2Pings
	H2Settings
	H2EmptyData
	H2WindowUpdates
	H2Priorities
	H2Unknown
	H2LateFrames
	H2Blocks

	H2Security // an HTTP/2 client negotiated a prohibited cipher suite

	reasons
)

// String returns the reason's name as statistics and logs show it.
func (r Reason) String() string {
	return [...]string{
		"queue-time", "route-limit", "key-limit", "no-memory", "largest-holder", "memory-cap", "accept-paused", "idle-dropped",
		"address-limit", "loop-limit", "slow-head", "slow-body", "slow-reader",
		"handshake-queue", "slow-handshake", "tls-error", "clear-text", "proxy-header",
		"h2-resets", "h2-faults", "h2-refusals", "h2-continuations", "h2-pings", "h2-settings", "h2-empty-data",
		"h2-window-updates", "h2-priorities", "h2-unknown-frames", "h2-late-frames", "h2-field-blocks",
		"h2-security",
	}[r]
}

// Reasons yields every reason.
func Reasons(yield func(Reason) bool) {
	for r := range reasons {
		if !yield(r) {
			return
		}
	}
}

// LogEvery is the minimum interval of log lines for each reason.
const LogEvery = time.Second

// Shed counts refusals, delays and evictions by reason. The zero value is ready for use; all methods are safe for concurrent
// use; a nil Shed counts nothing.
type Shed struct{ by [reasons]tally }

// tally is the state of one reason.
type tally struct {
	count  atomic.Uint64
	logged atomic.Uint64 // count at the latest log line
	next   atomic.Int64  // ns since start at which the next line may be written
}

// start is the origin of the clock of log lines.
var start = time.Now()

// Add counts an event and returns the new count.
func (s *Shed) Add(r Reason) uint64 {
	if s == nil {
		return 0
	}
	return s.by[r].count.Add(1)
}

// Note is Add for events whose log lines are rate-limited. It reports whether a line is due, at most once in LogEvery for each
// reason, and the number of events since the previous line, including this one.
func (s *Shed) Note(r Reason) (since uint64, due bool) {
	if s == nil {
		return 0, false
	}
	return s.by[r].countEvent()
}

func (t *tally) countEvent() (since uint64, due bool) {
	n := t.count.Add(1)
	now, next := int64(time.Since(start)), t.next.Load()
	if now < next || !t.next.CompareAndSwap(next, now+int64(LogEvery)) {
		return 0, false
	}
	return n - t.logged.Swap(n), true
}

// Lines limits the rate of log lines about one kind of event. The zero value is ready for use; it is safe for concurrent use.
type Lines struct{ tally }

// Note counts an event and reports whether a log line is due, as Shed.Note does.
func (l *Lines) Note() (since uint64, due bool) { return l.countEvent() }

// Count returns the count of a reason.
func (s *Shed) Count(r Reason) uint64 {
	if s == nil {
		return 0
	}
	return s.by[r].count.Load()
}
