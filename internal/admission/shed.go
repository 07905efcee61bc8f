package admission

import (
	"sync/atomic"
	"time"
)

// A Reason says which limit a client ran into. Each has a counter, so that what
// the server refuses can be seen while it refuses it.
type Reason uint8

const (
	QueueTime      Reason = iota // requests waited longer than they should: 503
	RouteLimit                   // a route had as many requests in flight as its limit allows: 503
	KeyLimit                     // one client had as many requests in flight as the limit allows: 429
	NoMemory                     // the budget had no room for a request: 503
	LargestHolder                // who held most, for longest, was refused or cut off to make room
	MemoryCap                    // one connection or address held as much as it may
	AcceptPaused                 // no connections were accepted for want of descriptors, or at their bound
	IdleDropped                  // an idle connection was closed to free its descriptor
	AddressLimit                 // one address had as many connections as it may
	LoopLimit                    // a loop had as many connections as it may
	SlowHead                     // a request head came below the least rate
	SlowBody                     // a request body came below the least rate
	SlowReader                   // an answer was taken below the least rate
	HandshakeQueue               // TLS handshakes waited longer than they should
	SlowHandshake                // a client did not shake hands in time, or kept others waiting
	TLSError                     // a client has broken the protocol of TLS, or has refused ours
	ClearText                    // a client has sent clear text where TLS is spoken
	ProxyHeader                  // a proxy's connection did not begin with a good PROXY protocol header

	// Clients of HTTP/2 did too much that serves no request; by what it was, in the order of package
	// http2's reasons.
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

	H2Security // a client of HTTP/2 has agreed to a cipher suite that it prohibits

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

// LogEvery is how often, at most, a log line is due for each reason.
const LogEvery = time.Second

// Shed counts, by reason, what was refused, put off or cut off. The zero value
// is ready for use; all methods are safe for concurrent use; a nil Shed counts
// nothing.
type Shed struct{ by [reasons]tally }

// tally is what is known of one reason.
type tally struct {
	count  atomic.Uint64
	logged atomic.Uint64 // count at the latest log line
	next   atomic.Int64  // ns since start at which the next may be written
}

// start is when the clock of log lines began.
var start = time.Now()

// Add counts one more, and returns how often it has happened.
func (s *Shed) Add(r Reason) uint64 {
	if s == nil {
		return 0
	}
	return s.by[r].count.Add(1)
}

// Note is Add for what is worth a log line, but not one each time. It reports
// whether a line is due, at most once every LogEvery for each reason, and how
// often it has happened since the line before, this time included.
func (s *Shed) Note(r Reason) (since uint64, due bool) {
	if s == nil {
		return 0, false
	}
	return s.by[r].note()
}

func (t *tally) note() (since uint64, due bool) {
	n := t.count.Add(1)
	now, next := int64(time.Since(start)), t.next.Load()
	if now < next || !t.next.CompareAndSwap(next, now+int64(LogEvery)) {
		return 0, false
	}
	return n - t.logged.Swap(n), true
}

// Lines says when a log line is due about one thing that happens often. The zero value is ready for use; it is safe for concurrent use.
type Lines struct{ tally }

// Note is that of a Shed.
func (l *Lines) Note() (since uint64, due bool) { return l.note() }

// Count returns how often it has happened.
func (s *Shed) Count(r Reason) uint64 {
	if s == nil {
		return 0
	}
	return s.by[r].count.Load()
}
