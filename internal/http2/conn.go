package http2

import (
	"errors"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// A Conn is the server's side of a connection. It is used by one goroutine at a time.
type Conn struct {
	// Out is the buffer for frames to the client. The owner provides it, sends its contents, and may append payloads
	// after [Conn.DataHeader].
	Out []byte

	// Now is the time in nanoseconds of a monotonic clock. The owner sets it from time to time. It refills the tokens.
	Now int64

	// Tight stops the growth of windows while memory is short.
	Tight bool

	// MostWindow limits the growth of windows below Limits.MaxStreamWindow; 0 sets no limit.
	MostWindow int

	lim     *Limits
	pool    *Pool
	decoder hpack.Decoder
	encoder hpack.Encoder
	bucket  bucket
	phase   phase
	reason  Reason // reason of the problem tooMuch
	failed  Error  // error that ended the connection, in phaseFailed

	streams []*Stream // streams that are open or whose action runs, sorted by number
	removed *Stream   // removed streams, linked by next
	ready   *schedule // nil if no stream waits
	over    recent
	lastID  uint32 // largest stream number that was received
	refused uint32 // last stream of a final GOAWAY: streams with larger numbers are ignored

	peerWindow   int32 // the client's SETTINGS_INITIAL_WINDOW_SIZE
	acknowledged bool  // the client has acknowledged our SETTINGS
	priorities   uint8 // the client's SETTINGS_NO_RFC7540_PRIORITIES plus 1
	goingAway    bool  // the client has sent GOAWAY
	sendWindow   int64
	withheld     int64 // part of sendWindow until the client's SETTINGS arrive, see Upgrade
	recvWindow   int64
	unread       int64 // received and unread bytes of all bodies

	block       []byte // received part of an incomplete field block
	blockStream uint32 // stream of the field block, 0 for none
	blockEnd    bool   // the field block has END_STREAM
	blockSelf   bool   // the stream of the field block depends on itself

	dataStream *Stream // stream of the current DATA frame, nil if it is dropped
	dataLeft   int32   // remaining data bytes of the frame
	padLeft    int32   // remaining padding bytes
	dataEnd    bool    // the frame has END_STREAM

	later []namedPriority // priorities of streams that are not open yet

	writing *Stream // stream whose field block is being written, see answer.go
	begin   int     // start of the block's frame in Out
	interim bool    // the block belongs to an interim answer
}

// A phase is the state of a connection.
type phase uint8

const (
	phasePreface phase = iota
	phaseSettings
	phaseOpen
	phaseInsecure
	phaseFailed
)

// An EventKind is the type of an Event.
type EventKind uint8

const (
	// NeedMore means that more input is needed for the next event.
	NeedMore EventKind = iota
	// RequestBegun is a new stream, with its Request.
	RequestBegun
	// BodyData is a part of a body, or its end.
	BodyData
	// BodyTrailers is the end of a body, with Trailers.
	BodyTrailers
	// StreamOver means that the stream was reset, by the client or because of its error, see Err. Its action may still run,
	// but cannot send.
	StreamOver
	// Costly means that the client has spent Limits.CallTokens since the call of Next. The caller may serve other
	// connections before it calls Next again; more events may follow.
	Costly
)

// An Event informs the owner of a connection.
type Event struct {
	Kind     EventKind
	End      bool // the body is complete; with RequestBegun: there is no body
	Stream   *Stream
	Request  *Request    // for RequestBegun; borrowed until the next call of Next with the pool
	Data     []byte      // for BodyData; a view of the input of Next
	Trailers *hpack.List // for BodyTrailers; borrowed like Request
	Err      Error       // for StreamOver
}

// Init initializes the connection and appends its preface to out, the owner's buffer. Connections that share a pool
// use it one at a time; see [Pool].
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

// Next reads the client's input, from its preface on, up to the next event. n is the number of bytes consumed. After
// NeedMore the caller passes the rest again with more input appended; the rest is less than a frame, at most 16 KB and
// its header. After an error, an Error, the caller sends Out and closes the connection.
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

// Prohibit marks a new connection as insufficiently secured (RFC 9113 §9.2): the first call of Next fails.
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

// step reads a frame, or the available part of a DATA frame.
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

// frame reads a complete frame.
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
	return c.spend(Unknown) // ignored, RFC 9113 §5.5
}

// failStream resets a stream because of a violation by its client.
func (c *Conn) failStream(st *Stream, p problem, ev *Event) problem {
	c.Out = appendReset(c.Out, st.ID, problems[p].code)
	*ev = Event{Kind: StreamOver, Stream: st, Err: Error{problem: p}}
	c.close(st, true)
	c.refill()
	return c.spend(Faults)
}

// refuse resets a stream that was never opened. underWay is the number of DATA bytes that may be in flight.
func (c *Conn) refuse(id uint32, underWay int32, p problem, r Reason) problem {
	c.Out = appendReset(c.Out, id, problems[p].code)
	c.recordCut(id, underWay)
	return c.spend(r)
}

// Len returns the number of streams that are open or whose action runs.
func (c *Conn) Len() int { return len(c.streams) }

// Streams calls yield for each stream that is open or whose action runs, in the order of their numbers. The caller must not end a
// stream during the call.
func (c *Conn) Streams(yield func(*Stream) bool) {
	for _, st := range c.streams {
		if !yield(st) {
			return
		}
	}
}

// Idle reports whether there are no streams and no partial frame or field block.
func (c *Conn) Idle() bool {
	return len(c.streams) == 0 && c.blockStream == 0 && c.dataLeft|c.padLeft == 0
}

// BlockSize returns the memory of a partial field block, in bytes.
func (c *Conn) BlockSize() int {
	if c.blockStream == 0 {
		return 0
	}
	return cap(c.block)
}

// Spent returns the tokens spent so far (see [Reason]), modulo 2^32.
func (c *Conn) Spent() uint32 { return c.bucket.spent }

// Distrust starts the client with a quarter of its tokens, because similar clients spent too many. It earns more with
// its first useful requests.
func (c *Conn) Distrust() { c.bucket.tokens = c.bucket.full / 4 }

// DropBlock releases the memory of a partial field block. The connection must not read any more.
func (c *Conn) DropBlock() { c.block = nil }

// InBlock reports whether there is a partial field block.
func (c *Conn) InBlock() bool { return c.blockStream != 0 }

// GoingAway reports whether the client has sent GOAWAY.
func (c *Conn) GoingAway() bool { return c.goingAway }

// GoAway tells the client to begin no more streams. The first call of a drain is not final: streams that the client
// opens before it receives the frame are still served (RFC 9113 §6.8). After the second call, some time later, new
// streams are ignored.
func (c *Conn) GoAway(final bool) {
	last := uint32(maxStreamID)
	if final {
		last = c.lastID
		c.refused = last
	}
	c.Out = appendGoAway(c.Out, last, NoError, "")
}

// Footprint returns the memory that the connection holds for its client, in bytes, without its own struct and its
// streams.
func (c *Conn) Footprint() int {
	return cap(c.block) + c.decoder.Footprint() + c.encoder.Footprint() + cap(c.streams)*8 + cap(c.later)*8 +
		cap(c.over.cut)*cutStreamSize
}

// Rest releases the memory that an idle connection does not need.
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

// blockProblem maps an error of a field block to a problem of the connection.
func blockProblem(err error) problem {
	var e hpack.Error
	if errors.As(err, &e) && e.Bomb() {
		return blockBomb
	}
	return badBlock
}
