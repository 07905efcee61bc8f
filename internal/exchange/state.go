package exchange

import (
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A State is what the pipeline and the adapter both know of the present request. It
// belongs to the goroutine that the request belongs to.
type State struct {
	Method string
	Path   string // canonical: percent-decoded, but for %2F and %25
	Query  string // as sent, without the question mark
	Sent   string // what Path was before it was rewritten, "" where it was not. Path is nobody's else then

	Lent    bool // Path and Query view memory of the adapter: copy, do not hand out
	Watched bool // somebody observes the answer: Call.Observe is to be called
	Loaded  bool // Whole is the body
	Viewed  bool // the action may hold a view of the body
	Numbers bool // the adapter writes the digits of numbers: the identity need not be made a text for answers

	Credentials Credentials // that standard middleware in front got, whatever it has passed on; and Identified
	gathers     uint16      // KiB, see Gather

	// Route is that of the request or, when no route matched, one that stands for all
	// such requests. It is never nil once the request has begun.
	Route *Route

	// The body. Whole is all of it when Loaded, wherever it lies; Payload is what the
	// pipeline read it into.
	Whole, Payload []byte

	Strings Strings
}

// KeptPayload is the largest payload, in bytes, that the pipeline keeps for later.
const KeptPayload = 64 << 10

// Set makes the state that of another message, for Call.Begin or Call.Find.
func (s *State) Set(method, path, query string, lent bool) {
	s.Method, s.Path, s.Query, s.Lent, s.Sent = method, path, query, lent, ""
	s.Credentials, s.gathers = 0, 0
}

// Gather has the answer of a standard handler gathered if it says that it has so many bytes at most, which are taken for whole
// KiB, and for 64 MiB where they are more.
func (s *State) Gather(most int64) {
	most = min(max(most, 0), (1<<16-1)<<10)
	s.gathers = max(s.gathers, uint16((most+1<<10-1)>>10))
}

// Gathers returns how long such an answer may be, in bytes.
func (s *State) Gathers() int64 { return int64(s.gathers) << 10 }

// Follow makes the path that of a request for whose action this one stands. It may still run.
func (s *State) Follow(from *State) {
	if from.Sent != "" {
		s.Path, s.Sent = from.Path, from.Sent
	}
}

// A Route is what adapters need to know of one.
type Route struct {
	Pattern  string        // as registered, the group's prefix included
	Timeout  time.Duration // 0: none
	MaxBody  int64         // in bytes; 0: that of the server
	Critical bool          // never refused because of an overload
	NoRoute  bool          // it stands for requests that no route takes
	Pace     Pace
	Streams  Pace         // of what the answers produce when they are sent
	Pends    atomic.Int64 // bytes of output that clients leave at first, at the most, as lately seen
	Large    Targets      // requests that left much, as lately seen
	Counts   RouteCounts

	WantsWhole atomic.Bool     // its action takes bodies in whole, as far as has been seen
	LateLines  admission.Lines // of the log
}

// RouteCounts is what is counted for a route.
//
// What is counted of requests, by route, costs a request on the loop engine one look
// at the clock and one addition to memory that its loop has for itself, and
// pipelined ones share that. On net/http it is two looks and three additions. A bare
// ServeHTTP pays one branch.
type RouteCounts struct {
	tally.Counter // by State.Outcome

	// These are rare and not worth a shard.
	Panics, Timeouts, Takeovers atomic.Uint64
}
