package http2

// A Reason is a kind of client behavior that causes work without serving a request. A connection has a bucket of tokens,
// and each such behavior costs tokens. Tokens return with time, with answered requests and with accepted DATA, since
// ordinary clients do all of this in proportion to those. A connection without tokens ends with ENHANCE_YOUR_CALM.
type Reason uint8

const (
	// Resets are streams that the client resets right after opening them, before they are answered ("rapid reset",
	// CVE-2023-44487).
	Resets Reason = iota + 1
	// Faults are streams that the server must reset because of a violation by the client ("MadeYouReset", CVE-2025-8671).
	Faults
	// Refusals are streams beyond the limit.
	Refusals
	// Continuations are CONTINUATION frames (CVE-2024-27316).
	Continuations
	// Pings are PING frames, SettingsFrames SETTINGS and GOAWAY (CVE-2019-9512 and -9515).
	Pings
	SettingsFrames
	// EmptyData are empty DATA frames (CVE-2019-9518).
	EmptyData
	// WindowUpdates are WINDOW_UPDATE frames.
	WindowUpdates
	// Priorities are PRIORITY and PRIORITY_UPDATE frames (CVE-2019-9513).
	Priorities
	// Unknown are frames of unknown types.
	Unknown
	// LateFrames are frames on ended streams, except DATA that was in flight when the server reset the stream.
	LateFrames
	// Blocks counts field blocks that are too large or have too large a decoded size ("HPACK bomb"). One of them ends the
	// connection, because the dynamic table is out of sync.
	Blocks

	Reasons // the number of reasons plus 1
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

// freeResetAge is the age of a stream, in nanoseconds, from which its client may reset it without a cost in tokens, as gRPC clients do at
// their deadlines. A stream counts until its action has returned, so at most Limits.MaxStreams streams
// can begin in that time. A client gains nothing over waiting for its answers.
const freeResetAge = 5_000_000

// Credits: the number of tokens that an event returns.
const (
	creditAnswered = 4 // an answered request
	creditPartly   = 4 // a request that the client resets during its answer, which costs one token
	creditData     = 4 // a DATA frame sent: the client may answer with a PING and two WINDOW_UPDATE frames
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

// credit returns n tokens.
func (b *bucket) credit(n int32) { b.tokens = min(b.tokens+n, b.full) }

// spend spends the tokens of one event at time now and reports whether there were enough.
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

// spend spends the tokens of one event that the client has caused.
func (c *Conn) spend(r Reason) problem {
	if c.bucket.spend(r, c.Now) {
		return noProblem
	}
	c.reason = r
	return tooMuch
}
