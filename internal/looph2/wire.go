//go:build linux

package looph2

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/request"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A Wire implements exchange.Wire for one stream at a time. Each driver has a Wire and reuses it. When an action loses its loop, it
// keeps the Wire.
type Wire struct {
	request.Base
	h     *Handler
	canon []byte
	lower []byte

	own   *stream
	d     *engine.Driver // nil on a goroutine of the stream's own
	clock *engine.Driver // the driver whose clock is used
	req   *http2.Request
	whole request.Whole
	since int64

	inFlight request.InFlight

	runs    execution
	made    made
	waited  bool // the action waited while it was on its loop
	kept    bool // user code may still refer to the stream
	closing bool // the connection closes after the response
}

// An execution is where a request is served.
type execution uint8

const (
	onLoop  execution = iota
	away              // on a worker, or on a goroutine of the stream
	acting            // likewise, while the action of a job runs
	leaving           // the action has returned; its response will be made on a goroutine of the stream
)

// made is how a streamed response was made.
type made uint8

const (
	madeAway   made = iota // not on the loop, or there is none
	madeHere               // on the loop, without waiting
	madeSlowly             // on the loop, and it waited
)

// newWire returns a wire.
func (h *Handler) newWire() *Wire {
	x := &Wire{h: h}
	x.Init(x, h.server.Pipeline)
	return x
}

// use assigns a request to the wire.
func (x *Wire) use(d *engine.Driver, own *stream, req *http2.Request, whole []byte) {
	x.Conn = own.s.c
	x.own, x.d, x.req, x.whole = own, d, req, request.Whole{Bytes: whole}
	x.clock, x.since = d, 0
	if d != nil {
		x.since = d.Arrived()
	}
	x.runs, x.made, x.kept, x.closing = onLoop, madeAway, false, false
}

// now reads the engine's clock.
func (x *Wire) now() int64 {
	if x.clock == nil {
		return x.since
	}
	return x.clock.Clock()
}

// end drops the state of the request.
func (x *Wire) end() {
	x.EndRequest()
	x.Call.End()
	if cap(x.canon) > 1<<10 {
		x.canon = nil
	}
	x.req, x.whole = nil, request.Whole{}
}

// setState sets the state of the call from the request.
func (x *Wire) setState() {
	path := view.String(x.req.Path())
	if x.req.Escaped && x.req.Status == 0 {
		x.canon, _ = semantics.AppendCanonical(x.canon[:0], path)
		path = view.String(x.canon)
	}
	x.State.Set(methodOf(x.req.Method(), &x.State.Strings), path, view.String(x.req.Query()), true)
}

func methodOf(m []byte, strings *exchange.Strings) string {
	switch string(m) {
	case "GET":
		return http.MethodGet
	case "POST":
		return http.MethodPost
	case "HEAD":
		return http.MethodHead
	case "PUT":
		return http.MethodPut
	case "DELETE":
		return http.MethodDelete
	case "PATCH":
		return http.MethodPatch
	case "OPTIONS":
		return http.MethodOptions
	}
	return strings.Copy(m)
}

func (x *Wire) find() bool {
	x.setState()
	return x.Call.Find(view.String(x.req.Authority()))
}

// giveUp gives up the loop before a step that may block.
func (x *Wire) giveUp() {
	if x.d != nil && x.runs == onLoop {
		x.d.DetachPart()
	}
}

func (x *Wire) Host() string { return x.State.Strings.Copy(x.req.Authority()) }

// protocolField is the name of the field with the protocol of an extended CONNECT (RFC 8441), as in package net/http.
const protocolField = ":protocol"

// index returns the first field at or after from with a name.
func (x *Wire) index(name string, from int) int {
	x.lower = append(x.lower[:0], name...)
	for i, c := range x.lower {
		if 'A' <= c && c <= 'Z' {
			x.lower[i] = c + 'a' - 'A'
		}
	}
	return x.req.Fields.Index(view.String(x.lower), max(from, x.req.Begin()))
}

func isCookie(name string) bool {
	return len(name) == len("Cookie") && strings.EqualFold(name, "Cookie")
}

func (x *Wire) Header(name string) (string, bool) {
	if x.own.kind == tunnel && name == protocolField {
		return x.State.Strings.Copy(x.req.Protocol()), true
	}
	i := x.index(name, 0)
	if i < 0 {
		if len(name) == len("Host") && strings.EqualFold(name, "Host") {
			host := x.Host()
			return host, host != ""
		}
		return "", false
	}
	if isCookie(name) {
		return strings.Clone(x.List(name)), true
	}
	return x.State.Strings.Copy(x.req.Fields.Value(i)), true
}

// List joins cookies with semicolons. Clients may send them in separate fields (RFC 9113 section 8.2.3).
func (x *Wire) List(name string) string {
	i := x.index(name, 0)
	if i < 0 {
		return ""
	}
	first := x.req.Fields.Value(i)
	if i = x.index(name, i+1); i < 0 {
		return view.String(first)
	}
	all, sep := append([]byte(nil), first...), exchange.Separator(name)
	for ; i >= 0; i = x.index(name, i+1) {
		all = append(append(all, sep...), x.req.Fields.Value(i)...)
	}
	return view.String(all)
}

func (x *Wire) Headers(yield func(name, value string) bool) {
	host, cookie := false, false
	for i := x.req.Begin(); i < x.req.Fields.Len(); i++ {
		field, value := x.req.Fields.Field(i)
		name := http.CanonicalHeaderKey(x.State.Strings.Copy(field))
		switch name {
		case "Host":
			host = true
		case "Cookie":
			if cookie {
				continue
			}
			cookie = true
			if !yield(name, strings.Clone(x.List(name))) {
				return
			}
			continue
		}
		if !yield(name, x.State.Strings.Copy(value)) {
			return
		}
	}
	if authority := x.Host(); !host && authority != "" {
		yield("Host", authority)
	}
}

func (x *Wire) ContentLength() int64 {
	switch n := x.req.ContentLength; {
	case n >= 0:
		return n
	case x.own.intake != bare:
		return -1
	}
	return 0
}

// Received returns the body if it has arrived entirely, without the part that was read.
func (x *Wire) Received() ([]byte, bool) {
	return x.whole.Unread(), x.own.intake != streamed
}

func (x *Wire) Body(limit int64) io.Reader {
	if x.own.intake == streamed {
		if x.own.kind == tunnel && x.State.Route.MaxBody <= 0 {
			limit = math.MaxInt64 // it has no announced length
		}
		return &bodyReader{x: x, own: x.own, limit: limit}
	}
	return x.whole.AtMost(limit, x.h.server)
}

// RefuseBody implements exchange.Wire.
func (x *Wire) RefuseBody() {}

// Glance implements exchange.Wire.
func (x *Wire) Glance(name string, _ bool) (named bool, origin string, ip, now int64) {
	return exchange.GlanceAt(x, name)
}

// Among implements exchange.Wire.
func (x *Wire) Among(names *exchange.Names) (set uint64) {
	for i := x.req.Begin(); i < x.req.Fields.Len(); i++ {
		name, _ := x.req.Fields.Field(i)
		set |= names.Set(view.String(name))
	}
	return set
}

func (x *Wire) Now() time.Time {
	if x.d == nil {
		return time.Now()
	}
	return x.d.Time()
}

func (x *Wire) Version() string { return "2" }

// Spelling implements exchange.Wire.
func (x *Wire) Spelling() string {
	path := x.req.Path()
	if x.req.EmptyQuery() {
		path = append(path[:len(path):len(path)], '?')
	} else if !x.req.Escaped {
		return ""
	}
	return x.State.Strings.Copy(path)
}

// OpenContext implements [request.Framing]: the context ends with the stream.
func (x *Wire) OpenContext() bool {
	if x.isLate() {
		return false
	}
	timeout := x.State.Route.Timeout
	x.MakeContext(x.h.base, x.own.s.local, timeout > 0, timeout-x.took())
	x.noteContext()
	return true
}

// noteContext ends the context with the stream.
//
//go:noinline
func (x *Wire) noteContext() {
	own, timed := x.own, x.Timed()
	x.kept = true
	own.s.mu.Lock()
	own.cancel, own.timeout = x.Canceler(), timed
	if timed != nil && own.answer.started() {
		timed.Lift()
	}
	late, canceled := timed != nil && own.action.isLate(), own.answer.canceled()
	own.s.mu.Unlock()
	if late { // late was set meanwhile, and expire found no context to end
		timed.End(context.DeadlineExceeded)
	}
	if canceled {
		x.Cancel()
	}
}

func (x *Wire) Begin(a *exchange.Answer, length int64) exchange.Sink {
	x.giveUp()
	if !x.liftTimeout() {
		return exchange.LateSink{}
	}
	if x.d != nil && x.Phase.Answers() {
		x.d.Answering()
	}
	own := x.own
	h := headOf(a, length, x.Undated)
	h.end = own.kind == headOnly || !exchange.BodyAllowed(a.Status())
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	own.flows().heads = append(own.heads, h)
	own.closing = own.closing || x.closing
	own.s.notify(own)
	return &sink{x: x, own: own, silent: h.end, left: own.lengthOf(h.status, length)}
}

func (x *Wire) Sink() exchange.Sink { return &sink{x: x, own: x.own, silent: true} }

const (
	// maxHeads is the number of heads of a stream that may wait for the loop when Interim adds one. The loop does not collect
	// heads while the socket is full.
	maxHeads = 4
	// fieldCost is the overhead of a field beyond its text, in bytes.
	fieldCost = 32
)

func (x *Wire) Interim(status int, fields http.Header) {
	if status == http.StatusSwitchingProtocols {
		return // HTTP/2 has no 101
	}
	x.giveUp()
	h, cost := head{status: status, length: -1}, fieldCost
	for name, value := range request.Sendable(fields) {
		h.fields = append(h.fields, [2]string{name, value})
		cost += fieldCost + len(name) + len(value)
	}
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if len(own.heads) >= maxHeads {
		x.awaitHeads(own)
	}
	if own.action.isLate() || own.answer.started() || own.over() != nil {
		return
	}
	if status == http.StatusContinue {
		own.flows().in.asked = true
	}
	own.flows().heads = append(own.heads, h)
	own.headsCost += cost
	own.chargeOutput()
	own.s.notify(own)
}

// awaitHeads waits until the loop has sent the heads, or they are not needed any more. s.mu is held, except while awaitHeads yields
// and regains the action's permit.
func (x *Wire) awaitHeads(own *stream) {
	s, d := own.s, x.d
	s.mu.Unlock()
	if d != nil {
		d.YieldPermit()
	}
	s.mu.Lock()
	own.setWorking(false)
	for len(own.heads) >= maxHeads && !own.action.isLate() && !own.answer.started() && own.over() == nil {
		own.moved.Wait()
	}
	own.setWorking(true)
	s.mu.Unlock()
	if d != nil {
		d.RegainPermit()
	}
	s.mu.Lock()
}

// CloseAfter requests the end of the connection. After the response has begun, CloseAfter has no effect: HTTP/2 resets the stream
// instead of closing the connection when the body is too short (sink.Finish).
func (x *Wire) CloseAfter() {
	x.own.s.mu.Lock()
	defer x.own.s.mu.Unlock()
	x.closing = x.closing || !x.own.answer.started()
}

// Account returns the account of the stream.
func (x *Wire) Account() *memory.Account {
	own := x.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.action >= late {
		return nil
	}
	x.kept = true
	a := own.accountOf()
	own.transferInput(a)
	return a.Lend()
}

// MayWait gives up the loop, and yields the action's permit to others. Until Waited the received part of the body is unclaimed.
func (x *Wire) MayWait() {
	x.giveUp()
	x.setUnclaimed(true)
	if x.d != nil {
		x.d.YieldPermit()
	}
}

// Waited reverts MayWait.
func (x *Wire) Waited() {
	x.setUnclaimed(false)
	if x.d != nil {
		x.d.RegainPermit()
	}
}
