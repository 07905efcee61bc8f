package http2

// A Reason is a kind of client behavior that causes work for the server but serves no request. A connection has a bucket of tokens, and
// each occurrence of such behavior costs tokens. The connection regains tokens over time, with each answered request and with each DATA
// frame, because ordinary clients cause this work in proportion to their requests and data. A connection without tokens ends with
// ENHANCE_YOUR_CALM.
type Reason uint8

const (
	// Resets counts streams that the client resets soon after opening them, before they are answered ("rapid reset", CVE-2023-44487).
	Resets Reason = iota + 1
	// Faults counts streams that the server must reset because the client violated the protocol ("MadeYouReset", CVE-2025-8671).
	Faults
	// Refusals counts streams that exceed the limit on concurrent streams, or that the client opens after a final GOAWAY.
	Refusals
	// Continuations counts CONTINUATION frames (CVE-2024-27316).
	Continuations
	// Pings counts PING frames (CVE-2019-9512). SettingsFrames counts SETTINGS frames (CVE-2019-9515) and GOAWAY frames.
	Pings
	SettingsFrames
	// EmptyData counts empty DATA frames (CVE-2019-9518).
	EmptyData
	// WindowUpdates counts WINDOW_UPDATE frames.
	WindowUpdates
	// Priorities counts PRIORITY and PRIORITY_UPDATE frames (CVE-2019-9513).
	Priorities
	// Unknown counts frames of unknown types.
	Unknown
	// LateFrames counts frames on streams that have ended, except DATA that was in flight when the server reset the stream.
	LateFrames
	// Blocks counts field blocks whose encoded or decoded size is too large ("HPACK bomb"). One such block ends the connection, because
	// the block was not decoded and the dynamic table is out of sync.
	Blocks

	Reasons // number of reasons plus 1
)

var reasons = [Reasons]struct {
	name string
	cost int32 // in tokens
}{
	Resets:         {"resets", 10},
	Faults:         {"faults", 10},
	Refusals:       {"refusals", 2},
	Continuations:  {"continuations", 5},
	Pings:          {"pings", 2},
	SettingsFrames: {"settings", 10},
	EmptyData:      {"empty-data", 2},
	WindowUpdates:  {"window-updates", 1},
	Priorities:     {"priorities", 2},
	Unknown:        {"unknown-frames", 2},
	LateFrames:     {"late-frames", 1},
	Blocks:         {"field-blocks", 0},
}

// String returns a name for counters and logs.
func (r Reason) String() string { return reasons[r].name }

// freeResetAge is an age of a stream in nanoseconds. From this age on, the client may reset the stream without a cost in tokens, as gRPC
// clients do at their deadlines. A stream counts toward Limits.MaxStreams until its action has returned, so a client can begin at most
// MaxStreams streams in that time. A client that waits for its answers can do the same.
const freeResetAge = 5_000_000

// The numbers of tokens that a connection regains by an event.
const (
	creditAnswered = 4 // an answered request
	creditPartly   = 4 // a request that the client resets while the server sends the answer; the reset itself costs tokens
	creditData     = 4 // a DATA frame that the server sends: the client may respond with a PING and two WINDOW_UPDATE frames
	creditBytes    = 1 << 10
)

// A bucket holds the tokens of a connection.
type bucket struct {
	tokens int32
	full   int32
	rate   int32 // per second
	spent  uint32
	last   int64 // time of the last refill, in nanoseconds
}

func (b *bucket) init(lim *Limits, now int64) {
	*b = bucket{tokens: int32(lim.Tokens), full: int32(lim.Tokens), rate: int32(lim.TokensPerSecond), last: now}
}

// credit adds n tokens, up to a full bucket.
func (b *bucket) credit(n int32) { b.tokens = min(b.tokens+n, b.full) }

// spend removes the tokens for one event at time now, in nanoseconds, and reports whether there were enough.
func (b *bucket) spend(r Reason, now int64) bool {
	b.tokens -= reasons[r].cost
	b.spent += uint32(reasons[r].cost)
	if b.tokens >= 0 {
		return true
	}
	const second = 1_000_000_000
	come := max(now-b.last, 0) / 1000 * int64(b.rate) / (second / 1000)
	b.last = now
	b.tokens = int32(min(int64(b.tokens)+come, int64(b.full)))
	return b.tokens >= 0
}

// spend removes the tokens for one event that the client has caused. It returns tooMuch if there were not enough.
func (c *Conn) spend(r Reason) problem {
	if c.bucket.spend(r, c.Now) {
		return noProblem
	}
	c.reason = r
	return tooMuch
}
