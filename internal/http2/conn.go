package http2

import (
	"errors"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// A Conn is the server's side of a connection. Only one goroutine may use it at a time. The owner of a Conn is the code that
// reads and writes the connection.
type Conn struct {
	// Out is the buffer for frames to the client. The owner provides it, sends its contents, and may append payloads
	// after [Conn.DataHeader].
	Out []byte

	// Now is the time of a monotonic clock in nanoseconds. The owner updates it before it calls methods. The refill of tokens and
	// the deadlines depend on Now.
	Now int64

	// The owner sets Tight while memory is short. The windows do not grow then.
	Tight bool

	// MostWindow limits the growth of stream windows below Limits.MaxStreamWindow. 0 sets no limit.
	MostWindow int

	lim     *Limits
	pool    *Pool
	decoder hpack.Decoder
	encoder hpack.Encoder
	bucket  bucket
	phase   phase
	reason  Reason // reason of the problem tooMuch
	failed  Error  // the error that ended the connection, in phaseFailed

	streams []*Stream // streams that are open or whose action has not returned, sorted by ID
	removed *Stream   // streams whose memory can be reused, linked by next
	ready   *schedule // may be nil if no stream waits to send
	over    recent
	lastID  uint32 // largest stream ID that was received
	refused uint32 // the last stream ID in a final GOAWAY: streams with larger IDs are ignored

	peerWindow   int32 // the client's SETTINGS_INITIAL_WINDOW_SIZE
	acknowledged bool  // the client has acknowledged the server's SETTINGS
	priorities   uint8 // the client's SETTINGS_NO_RFC7540_PRIORITIES plus 1
	goingAway    bool  // the client has sent GOAWAY
	sendWindow   int64
	withheld     int64 // part of the send window that is withheld until the client's SETTINGS arrive, see Upgrade
	recvWindow   int64
	unread       int64 // bytes of all bodies that were received and not yet read

	block       []byte // received part of an incomplete field block
	blockStream uint32 // stream of the field block, 0 for none
	blockEnd    bool   // the field block has END_STREAM
	blockSelf   bool   // the stream of the field block depends on itself

	dataStream *Stream // stream of the current DATA frame, nil if the data is dropped
	dataLeft   int32   // bytes of data that are missing from the current frame
	padLeft    int32   // bytes of padding that are missing from the current frame
	dataEnd    bool    // the current frame has END_STREAM

	later []namedPriority // priorities of streams that are not open yet

	writing *Stream // stream whose field block is being written, see answer.go
	begin   int     // start of the block's first frame in Out
	interim bool    // the block is the head of an interim response
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
	// RequestBegun reports a new stream with its Request.
	RequestBegun
	// BodyData reports a part of a body. The event's End reports whether this is the last part.
	BodyData
	// BodyTrailers reports the end of a body that has Trailers.
	BodyTrailers
	// StreamOver reports that the client has reset the stream, or that the server has reset it because of the error Err. The
	// action of the stream may still run, but cannot send.
	StreamOver
	// Costly reports that the client has spent Limits.CallTokens tokens since the call of Next. The owner may serve other
	// connections before it calls Next again. The input may contain more events.
	Costly
)

// An Event reports a change of a connection to its owner.
type Event struct {
	Kind     EventKind
	End      bool // the body is complete; for RequestBegun: the request has no body
	Stream   *Stream
	Request  *Request    // for RequestBegun; borrowed until the next call of Next on a connection with the same pool
	Data     []byte      // for BodyData; a view of the input of Next
	Trailers *hpack.List // for BodyTrailers; borrowed like Request
	Err      Error       // for StreamOver
}

// Init initializes the connection and appends the server's preface to out, the owner's buffer, which becomes Out. now is the
// initial value of Now. Connections that share a pool must not be used at the same time; see [Pool].
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

// Adopt replaces the connection's pool, after another loop has taken the connection.
func (c *Conn) Adopt(pool *Pool) { c.pool = pool }

// Next reads the client's input up to the next event. The input of a connection begins with the client's preface. n is the number
// of bytes that Next consumed. After the event NeedMore, the caller must pass the remaining bytes again, followed by more input.
// These bytes are less than one frame: at most 16 KiB and the frame header. err is an [Error]. After an error the caller must
// send Out and close the connection.
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

// Prohibit makes the next call of Next fail, because TLS does not meet the requirements of RFC 9113 §9.2. Call it before the
// first call of Next.
func (c *Conn) Prohibit() { c.phase = phaseInsecure }

// fail ends the connection with an error (RFC 9113 §5.4.1).
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

// step reads one frame, or the part of a DATA frame that is available.
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

// failStream resets a stream because the client violated the protocol.
func (c *Conn) failStream(st *Stream, p problem, ev *Event) problem {
	c.Out = appendReset(c.Out, st.ID, problems[p].code)
	*ev = Event{Kind: StreamOver, Stream: st, Err: Error{problem: p}}
	c.close(st, true)
	c.refill()
	return c.spend(Faults)
}

// refuse resets a stream that is not opened because of a problem. underWay is the maximum number of bytes of DATA that may be in
// flight for the stream.
func (c *Conn) refuse(id uint32, underWay int32, p problem, r Reason) problem {
	c.Out = appendReset(c.Out, id, problems[p].code)
	c.recordCut(id, underWay)
	return c.spend(r)
}

// Len returns the number of streams that are open or whose action has not returned.
func (c *Conn) Len() int { return len(c.streams) }

// Streams calls yield for each stream that is open or whose action has not returned, in the order of stream IDs. The caller must
// not end a stream during the call.
func (c *Conn) Streams(yield func(*Stream) bool) {
	for _, st := range c.streams {
		if !yield(st) {
			return
		}
	}
}

// Idle reports whether the connection has no stream, no partial frame and no partial field block.
func (c *Conn) Idle() bool {
	return len(c.streams) == 0 && c.blockStream == 0 && c.dataLeft|c.padLeft == 0
}

// BlockSize returns the memory that a partial field block occupies, in bytes.
func (c *Conn) BlockSize() int {
	if c.blockStream == 0 {
		return 0
	}
	return cap(c.block)
}

// Spent returns the number of tokens that the client has spent (see [Reason]), modulo 2^32.
func (c *Conn) Spent() uint32 { return c.bucket.spent }

// Distrust reduces the tokens of a new connection to a quarter, because similar clients spent too many. The client regains tokens
// with its first answered requests.
func (c *Conn) Distrust() { c.bucket.tokens = c.bucket.full / 4 }

// DropBlock releases the memory of a partial field block. The caller must not call Next afterwards.
func (c *Conn) DropBlock() { c.block = nil }

// InBlock reports whether a part of a field block was received and the rest is missing.
func (c *Conn) InBlock() bool { return c.blockStream != 0 }

// GoingAway reports whether the client has sent GOAWAY.
func (c *Conn) GoingAway() bool { return c.goingAway }

// GoAway tells the client to open no more streams. The first call in a drain has final = false: streams that the client opens
// before it receives the frame are still served (RFC 9113 §6.8). The second call has final = true: later streams are ignored.
func (c *Conn) GoAway(final bool) {
	last := uint32(maxStreamID)
	if final {
		last = c.lastID
		c.refused = last
	}
	c.Out = appendGoAway(c.Out, last, NoError, "")
}

// Footprint returns the memory in bytes that the connection occupies for its client. It does not include the Conn and its
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
