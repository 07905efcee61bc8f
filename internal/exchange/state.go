package exchange

import (
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A State is the state of the current request that the pipeline and the adapter share. It belongs to the goroutine that has the
// request.
type State struct {
	Method string
	Path   string // canonical: percent-decoded, except %2F and %25
	Query  string // as sent, without the question mark
	Sent   string // Path before it was rewritten, "" if it was not. A rewritten Path does not view memory of the adapter

	Lent    bool // Path and Query view memory of the adapter: copy them before passing them on
	Watched bool // the answer has observers: Call.Observe must be called
	Loaded  bool // Whole is the body
	Viewed  bool // the action may have a view of the body
	Numbers bool // the adapter can write the digits of a Number: answers need no text for their identity

	Credentials Credentials // those that the request had before standard middleware, which may remove fields; and Identified
	gathers     uint16      // KiB, see Gather

	// Route is the route of the request or a substitute if no route matches. It is not nil after the request has begun.
	Route *Route

	// Whole is the complete body if Loaded is set; it may be stored in any memory. Payload is the pipeline's buffer for a body.
	Whole, Payload []byte

	Strings Strings
}

// KeptPayload is the maximum capacity, in bytes, of a payload that the pipeline reuses.
const KeptPayload = 64 << 10

// Set initialises the state for the next request. Call.Begin or Call.Find must be called next.
func (s *State) Set(method, path, query string, lent bool) {
	s.Method, s.Path, s.Query, s.Lent, s.Sent = method, path, query, lent, ""
	s.Credentials, s.gathers = 0, 0
}

// Gather requests that the answer of a standard handler be collected in memory before it is sent, if its Content-Length is at
// most limit bytes. The limit is rounded up to KiB and is at most 64 MiB.
func (s *State) Gather(limit int64) {
	limit = min(max(limit, 0), (1<<16-1)<<10)
	s.gathers = max(s.gathers, uint16((limit+1<<10-1)>>10))
}

// Gathers returns the limit of Gather, in bytes.
func (s *State) Gathers() int64 { return int64(s.gathers) << 10 }

// Follow copies a rewritten path from the state of a late action, which may still run.
func (s *State) Follow(from *State) {
	if from.Sent != "" {
		s.Path, s.Sent = from.Path, from.Sent
	}
}

// A Route holds the properties of a route that adapters need.
type Route struct {
	Pattern  string        // as registered, with the group's prefix
	Timeout  time.Duration // 0: none
	MaxBody  int64         // in bytes; 0: the server's limit
	Critical bool          // never refused under overload
	NoRoute  bool          // the substitute for requests without a route
	Blocking BlockingStat
	Streams  BlockingStat // of producing streamed answers
	Pends    atomic.Int64 // estimate of the bytes of a large answer that the socket does not accept at once; see Pended
	Counts   RouteCounts

	WantsWhole atomic.Bool     // the action has used complete bodies
	LateLines  admission.Lines // limits the log lines about late actions
}

// RouteCounts are the counters of a route.
//
// On the loop engine, counting a request by route costs one clock reading, which pipelined requests share, and one addition to
// memory of the loop. On net/http it costs two clock readings and three additions.
type RouteCounts struct {
	tally.Counter // by State.Outcome

	// These are rare, so they are not sharded.
	Panics, Timeouts, Takeovers atomic.Uint64
}
