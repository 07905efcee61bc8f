package http2

// A Reason is something that costs a server work and serves no request. A connection has a
// bucket of tokens. Whoever does such a thing pays for it; tokens come back with time,
// and with requests that are answered and DATA that is taken, since ordinary clients do all
// of this in proportion to those. The connection of a client that has no tokens left ends
// with ENHANCE_YOUR_CALM.
type Reason uint8

const (
	// Resets are streams that the client resets as soon as it has begun them, before they are answered ("rapid
	// reset", CVE-2023-44487).
	Resets Reason = iota + 1
	// Faults are streams that the server must reset because of what the client did
	// ("MadeYouReset", CVE-2025-8671).
	Faults
	// Refusals are streams beyond the limit.
	Refusals
	// Continuations are CONTINUATION frames (CVE-2024-27316).
	Continuations
	// Pings are PING frames, SettingsFrames SETTINGS and GOAWAY (CVE-2019-9512 and -9515).
	Pings
	SettingsFrames
	// EmptyData are DATA frames with nothing in them (CVE-2019-9518).
	EmptyData
	// WindowUpdates are WINDOW_UPDATE frames.
	WindowUpdates
	// Priorities are PRIORITY and PRIORITY_UPDATE frames (CVE-2019-9513).
	Priorities
	// Unknown are frames of unknown types.
	Unknown
	// LateFrames are frames on streams that are over, but for DATA that was under way when we reset its stream.
	LateFrames
	// Blocks are field blocks that are too large, or expand to too much ("HPACK bomb"). One of them ends the
	// connection: what it would do to the dynamic table is not known.
	Blocks

	Reasons // one more than there are
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

// patience is the age of a stream, in nanoseconds, from which its client may reset it for nothing, as gRPC clients do at their
// deadlines. A place is free only when the action has returned, so no more than Limits.MaxStreams can begin in that time: by that a
// client gets no further than by waiting for its answers.
const patience = 5_000_000

// What gives tokens back.
const (
	creditAnswered = 4 // a request that was answered
	creditPartly   = 4 // ... and is reset in the middle of the answer: with one message it has paid for that
	creditData     = 4 // a DATA frame that was sent: a client may answer it with a PING and both windows; one more for each ...
	creditBytes    = 1 << 10
)

// A bucket has the tokens of a connection.
type bucket struct {
	tokens int32
	full   int32
	rate   int32 // a second
	spent  uint32
	last   int64 // when tokens last came with time, in nanoseconds
}

func (b *bucket) init(lim *Limits, now int64) {
	*b = bucket{tokens: int32(lim.Tokens), full: int32(lim.Tokens), rate: int32(lim.TokensPerSecond), last: now}
}

// credit gives tokens back.
func (b *bucket) credit(n int32) { b.tokens = min(b.tokens+n, b.full) }

// spend pays for one thing at now and reports whether there were tokens for it.
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

// spend pays for one thing that the client did.
func (c *Conn) spend(r Reason) problem {
	if c.bucket.spend(r, c.Now) {
		return noProblem
	}
	c.reason = r
	return tooMuch
}
