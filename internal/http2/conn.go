package http2

import (
	"errors"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// A Conn is the server's side of a connection. It is used by one goroutine at a time.
type Conn struct {
	// Out is where frames to the client are appended. The owner lends it, sends what is
	// in it, and may append payloads after [Conn.DataHeader].
	Out []byte

	// Now is the time, in nanoseconds of any clock that does not go back. The owner sets
	// it now and then; tokens come with it.
	Now int64

	// Tight keeps windows from growing, while the owner is short of memory.
	Tight bool

	// MostWindow bounds how far windows grow, below Limits.MaxStreamWindow; 0 does not.
	MostWindow int

	lim     *Limits
	pool    *Pool
	decoder hpack.Decoder
	encoder hpack.Encoder
	bucket  bucket
	phase   phase
	reason  Reason // of the problem tooMuch
	failed  Error  // in phaseFailed

	streams []*Stream // open, or with an action that runs; by number
	removed *Stream   // no longer, linked by next
	ready   *schedule // nil: nothing waits
	over    recent
	lastID  uint32 // the largest number so far
	refused uint32 // larger numbers are ignored: the last of a final GOAWAY

	peerWindow   int32 // what SETTINGS_INITIAL_WINDOW_SIZE the client has set
	acknowledged bool  // the client has our SETTINGS
	priorities   uint8 // what the client said of SETTINGS_NO_RFC7540_PRIORITIES, plus 1
	goingAway    bool  // the client has sent GOAWAY
	sendWindow   int64
	withheld     int64 // from sendWindow until the client's SETTINGS have come, see Upgrade
	recvWindow   int64
	unread       int64 // bytes of bodies that came and were not read, of all streams

	block       []byte // what has come of a field block that is not complete
	blockStream uint32 // and its stream, 0 for none
	blockEnd    bool   // with END_STREAM
	blockSelf   bool   // on which it depends itself

	dataStream *Stream // of the DATA frame that is being read, nil when it is dropped
	dataLeft   int32   // bytes of data to come in it
	padLeft    int32   // and of padding
	dataEnd    bool    // with END_STREAM

	later []namedPriority // of streams that are not open yet

	writing *Stream // whose field block is being written, see answer.go
	begin   int     // where in Out its frame begins
	interim bool    // it is that of an interim answer
}

// A phase is how far a connection has come.
type phase uint8

const (
	phasePreface phase = iota
	phaseSettings
	phaseOpen
	phaseInsecure
	phaseFailed
)

// An EventKind says what an Event is about.
type EventKind uint8

const (
	// NeedMore means that nothing more is to be told before more bytes come.
	NeedMore EventKind = iota
	// RequestBegun is a new stream, with its Request.
	RequestBegun
	// BodyData is a piece of a body, or its end.
	BodyData
	// BodyTrailers is the end of a body, with Trailers.
	BodyTrailers
	// StreamOver means that the stream was reset, by the client or because of what it
	// did, as Err says. Its action may run on; nothing can be sent.
	StreamOver
	// Costly means that the client has spent Limits.CallTokens since Next was called: whoever serves others, too, may see
	// to them before the next call. There may be more to be told.
	Costly
)

// An Event is what the owner of a connection has to know.
type Event struct {
	Kind     EventKind
	End      bool // all of the body is here; of RequestBegun: it has none
	Stream   *Stream
	Request  *Request    // of RequestBegun; borrowed until the pool's next call of Next
	Data     []byte      // of BodyData; a view of what Next was given
	Trailers *hpack.List // of BodyTrailers; borrowed as Request is
	Err      Error       // of StreamOver
}

// Init makes the connection ready and appends its preface to Out, which the owner has lent.
// The pool's users take turns; see [Pool].
func (c *Conn) Init(lim *Limits, pool *Pool, out []byte, now int64) {
	*c = Conn{
		Out: out, Now: now, lim: lim, pool: pool,
		refused: maxStreamID, peerWindow: initialWindow, sendWindow: initialWindow,
		recvWindow: initialWindow,
	}
	c.decoder.Init(classes)
	c.encoder.Init(uint32(lim.EncoderTable))
	c.bucket.init(lim, now)
	c.greet()
}

// Adopt gives the connection to another loop's pool.
func (c *Conn) Adopt(pool *Pool) { c.pool = pool }

// Next reads what the client has sent, from its preface on, as far as the next event.
// n is how many bytes of in it is done with. The event NeedMore means that the rest must
// be passed again with more behind it: less than a frame, at most 16 KB and its header.
// After an error, an Error, the connection must be closed when Out has been sent.
func (c *Conn) Next(in []byte) (n int, ev Event, err error) {
	c.recycle()
	for spent := c.bucket.spent; ; {
		used, p := c.step(in[n:], &ev)
		n += used
		switch {
		case p != noProblem:
			return n, Event{}, c.fail(p)
		case ev.Kind != NeedMore || used == 0:
			return n, ev, nil
		case c.bucket.spent-spent >= uint32(c.lim.CallTokens):
			return n, Event{Kind: Costly}, nil
		}
	}
}

// Prohibit says of a connection that has just begun that what secures it is not good enough (RFC 9113 §9.2): the first Next fails.
func (c *Conn) Prohibit() { c.phase = phaseInsecure }

// fail ends the connection (RFC 9113 §5.4.1).
func (c *Conn) fail(p problem) error {
	if c.phase != phaseFailed {
		c.phase = phaseFailed
		c.failed = Error{problem: p}
		switch p {
		case tooMuch:
			c.failed.reason = c.reason
		case blockBomb, blockTooLarge:
			c.failed.reason = Blocks
		}
		c.Out = appendGoAway(c.Out, c.lastID, c.failed.Code(), c.failed.Error())
	}
	return c.failed
}

// step reads a frame, or what is here of one.
func (c *Conn) step(in []byte, ev *Event) (used int, p problem) {
	switch c.phase {
	case phaseFailed:
		return 0, c.failed.problem
	case phaseInsecure:
		return 0, inadequateSecurity
	case phasePreface:
		yes, maybe := HasPreface(in)
		switch {
		case yes:
			c.phase = phaseSettings
			return len(Preface), noProblem
		case maybe:
			return 0, noProblem
		}
		return 0, badPreface
	}
	if c.dataLeft|c.padLeft != 0 {
		return c.payload(in, ev), noProblem
	}
	if len(in) < headerLength {
		return 0, noProblem
	}
	h := readHeader(in)
	switch {
	case c.phase == phaseSettings && (h.kind != frameSettings || h.has(flagAck)):
		return 0, settingsMissing
	case h.length > maxFrame:
		return 0, frameTooLarge
	case c.blockStream != 0 && (h.kind != frameContinuation || h.stream != c.blockStream):
		return 0, continuationMissing
	case h.kind == frameData:
		return c.data(h, in, ev)
	case len(in) < headerLength+h.length:
		return 0, noProblem
	}
	used = headerLength + h.length
	return used, c.frame(h, in[headerLength:used:used], ev)
}

// frame reads a frame that is here in whole.
func (c *Conn) frame(h frameHeader, payload []byte, ev *Event) problem {
	switch h.kind {
	case frameHeaders:
		return c.headers(h, payload, ev)
	case frameContinuation:
		return c.continuation(h, payload, ev)
	case framePriority:
		return c.priorityFrame(h, payload, ev)
	case frameReset:
		return c.resetFrame(h, payload, ev)
	case frameSettings:
		return c.settingsFrame(h, payload)
	case framePushPromise:
		return pushFromClient
	case framePing:
		return c.ping(h, payload)
	case frameGoAway:
		return c.goAwayFrame(h, payload)
	case frameWindowUpdate:
		return c.windowUpdate(h, payload, ev)
	case framePriorityUpdate:
		return c.priorityUpdate(h, payload)
	}
	return c.spend(Unknown) // RFC 9113 §5.5: it is ignored
}

// failStream ends a stream because of what its client did.
func (c *Conn) failStream(st *Stream, p problem, ev *Event) problem {
	c.Out = appendReset(c.Out, st.ID, problems[p].code)
	*ev = Event{Kind: StreamOver, Stream: st, Err: Error{problem: p}}
	c.close(st, true)
	c.refill()
	return c.spend(Faults)
}

// refuse resets a stream that nobody has heard of. underWay is how many bytes of DATA may be.
func (c *Conn) refuse(id uint32, underWay int32, p problem, r Reason) problem {
	c.Out = appendReset(c.Out, id, problems[p].code)
	c.noteCut(id, underWay)
	return c.spend(r)
}

// Len returns how many streams have a place.
func (c *Conn) Len() int { return len(c.streams) }

// Streams calls yield with each stream that has a place, in the order of their numbers. The
// caller must not end any meanwhile.
func (c *Conn) Streams(yield func(*Stream) bool) {
	for _, st := range c.streams {
		if !yield(st) {
			return
		}
	}
}

// Idle reports whether nothing is going on: no stream has a place, and no frame or field
// block is half here.
func (c *Conn) Idle() bool {
	return len(c.streams) == 0 && c.blockStream == 0 && c.dataLeft|c.padLeft == 0
}

// BlockSize returns how many bytes of memory it has for a field block that is half here.
func (c *Conn) BlockSize() int {
	if c.blockStream == 0 {
		return 0
	}
	return cap(c.block)
}

// Spent returns how many tokens the client has spent so far (see [Reason]), modulo 2^32.
func (c *Conn) Spent() uint32 { return c.bucket.spent }

// Distrust leaves the client a quarter of its tokens to begin with, because others like it did too much. It has more
// as soon as it does something useful.
func (c *Conn) Distrust() { c.bucket.tokens = c.bucket.full / 4 }

// DropBlock gives that memory back, of a connection that reads no more.
func (c *Conn) DropBlock() { c.block = nil }

// InBlock reports whether a field block is half here.
func (c *Conn) InBlock() bool { return c.blockStream != 0 }

// GoingAway reports whether the client has said that it will begin no more streams.
func (c *Conn) GoingAway() bool { return c.goingAway }

// GoAway tells the client to begin no more streams. The first call of a drain is not final:
// what the client has sent before it learns is still served (RFC 9113 §6.8). With the second,
// a while later, streams that have not come are ignored.
func (c *Conn) GoAway(final bool) {
	last := uint32(maxStreamID)
	if final {
		last = c.lastID
		c.refused = last
	}
	c.Out = appendGoAway(c.Out, last, NoError, "")
}

// Footprint returns how many bytes of memory the connection has for what its client has
// made it remember, beyond its own and that of its streams.
func (c *Conn) Footprint() int {
	return cap(c.block) + c.decoder.Footprint() + c.encoder.Footprint() + cap(c.streams)*8 + cap(c.later)*8 +
		cap(c.over.cut)*cutStreamSize
}

// Rest gives back memory that an idle connection does not need.
func (c *Conn) Rest() {
	c.recycle()
	c.decoder.Shrink()
	c.encoder.Rest()
	c.later = nil
	c.over.rest()
	if c.blockStream == 0 {
		c.block = nil
	}
	if len(c.streams) == 0 {
		c.streams = nil
	}
	if c.ready != nil && c.ready.used == 0 {
		c.ready = nil
	}
}

// blockProblem says what an error of a field block means for the connection.
func blockProblem(err error) problem {
	var e hpack.Error
	if errors.As(err, &e) && e.Bomb() {
		return blockBomb
	}
	return badBlock
}
