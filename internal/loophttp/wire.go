//go:build linux

package loophttp

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/request"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A wire is the state that a driver of the loop engine keeps from request to request: the call in the pipeline, the parsed
// head, and the progress of the answer. It implements exchange.Wire for its call.
type wire struct {
	handler *handler
	call    exchange.Call
	s       *exchange.State // the state of call
	head    http1.Head
	names   http1.Names    // the field names of head, if named is set
	opening *http1.Opening // allocated on demand
	canon   []byte         // the canonical path, if the client's path has escapes

	// The state of the current call of the handler.
	d     *engine.Driver
	c     *engine.Conn
	given int // bytes of input passed to the call

	// mu guards the connection, the driver's output and the state of body and answer. An operation that waits releases mu
	// meanwhile, so that reading and writing are independent: readMu is held during the whole read of a body, writeMu during
	// the whole write. The lock order is readMu, writeMu, mu.
	readMu, writeMu, mu sync.Mutex

	// The state of the current request.
	stream    *bodyStream    // the request body, if the action reads it from the connection; allocated on demand
	whole     request.Whole  // the request body, if it has arrived completely
	chunked   *http1.Chunked // decoded whole; nil if it was not chunked
	gathered  *unfinished    // the memory of head and body, if they arrived in pieces and no response owns it
	minor     uint8          // the client's minor version
	body      bodySource
	duplex    bool // the action reads and writes at the same time
	undated   bool // the answer has no Date
	closing   bool // the connection closes after the answer
	begun     bool // the head of a streamed answer is in the output
	inPlace   bool // head and whole are stored in the input
	moved     bool // the input of the call was copied, see moveInput
	hijacked  bool // the connection was hijacked
	phase     request.Phase
	begunAt   int                // offset of the streamed answer in the output, -1 if part of it was sent
	planned   *planned           // the rest of the request: it runs in the background, or switches the protocol
	kept      []byte             // copy of the input, made by moveInput
	cancel    context.CancelFunc // cancels ctx
	ctx       context.Context    // the request's context, allocated on demand
	local     *localContext      // parent of ctx
	std       *http.Request      // allocated on demand
	stdBody   *stdBody           // body of std, until it is closed
	after     []byte             // the input after the request
	deadlines *deadlines         // deadlines set by a standard handler, nil for none

	count    request.Counter
	inFlight request.InFlight

	named       bool  // names belongs to head
	closeVisits uint8 // remaining visits in which the clock is read after each request, see visit.go
	claims      int32 // calls of claim minus calls of unclaim: while positive, the timeout cannot take the connection
}

// A bodySource is where the action of a request reads its body.
type bodySource uint8

const (
	received     bodySource = iota // wire.whole
	arriving                       // wire.stream
	startedEarly                   // wire.stream, of a small body whose gathering ended early
)

// serveNext performs the next step for the input in: it answers one request or stores an unfinished one. It returns the number
// of bytes consumed.
func (x *wire) serveNext(in []byte) (n int, next progress) {
	u, _ := x.c.Proto.(*unfinished)
	if u != nil && u.complete {
		return x.serveGathered(u, in)
	}
	head := &x.head
	if u != nil {
		head = &u.head
	}
	n, err := head.Parse(in, &x.handler.limits)
	switch {
	case err != nil:
		x.head.Method = head.Method
		x.knowHead(nil)
		return len(in), x.refuseError(err)
	case n == 0:
		if u == nil {
			u = x.newUnfinished()
			x.head, u.head = u.head, x.head
			x.c.Proto = u
			x.c.SetDeadline(x.handler.server.HeadTimeout)
		}
		return 0, needInput
	case u != nil:
		x.head, u.head = u.head, x.head
		x.c.Proto = nil
		u.release()
	}
	if !x.head.HasBody() {
		if x.handler.upgrades && x.upgrade() {
			return n, changedProtocol
		}
		return x.serveWhole(in, n, nil)
	}
	return x.serveHead(in, n)
}

// serveHead serves a request with a body, whose complete head is in[:n]. It determines how the body is received.
func (x *wire) serveHead(in []byte, n int) (int, progress) {
	h := &x.head
	rest := in[n:]
	length := h.ContentLength
	switch {
	case !h.Expect100 && !h.Chunked && int64(len(rest)) >= length:
		return x.serveWhole(in, n+int(length), rest[:length])
	case !h.Chunked && length > x.handler.server.Pipeline.LeastBody() && x.tooLong(length):
		return x.serveStreamed(in, n) // the client need not send a body that will be refused
	case !h.Expect100 && (h.Chunked || length <= smallBody):
		u := x.newUnfinished()
		u.setRaw(h.Bytes())
		h.CopyTo(&u.head, u.raw)
		u.complete = true
		u.chunked.Reset(&x.handler.limits, -1)
		x.gather(u)
		taken, next := x.serveGathered(u, rest)
		if next == needInput {
			x.d.Recall() // a body that arrives in two pieces needs no goroutine
		}
		return n + taken, next
	}
	return x.serveStreamed(in, n)
}

// tooLong reports whether a body exceeds the limit of its route.
func (x *wire) tooLong(length int64) bool {
	x.find()
	return length > x.handler.server.MaxBodyOf(x.s.Route)
}

// serveWhole answers a complete request: its head and body are in[:n].
func (x *wire) serveWhole(in []byte, n int, body []byte) (int, progress) {
	x.whole, x.body, x.after, x.inPlace = request.Whole{Bytes: body}, received, in[n:], true
	x.find()
	if x.overdue() {
		return n, x.shed()
	}
	if x.s.Route.Blocking.Suspect() && x.tooSlowForLoop() {
		return 0, needWorker
	}
	return n, x.answer()
}

// serveStreamed answers a request whose body the action reads from the connection, because the body is large or the client
// waits for 100 Continue.
func (x *wire) serveStreamed(in []byte, n int) (int, progress) {
	x.whole, x.body, x.inPlace = request.Whole{}, arriving, true
	x.find()
	if x.overdue() {
		x.closing = true // the client is already sending the body
		return n, x.shed()
	}
	if x.tooSlowForLoop() {
		return 0, needWorker
	}
	x.needStream()
	x.stream.begin(x, in[n:])
	next := x.answer()
	return n + x.stream.taken, next
}

// find starts a call for the parsed head and routes it.
func (x *wire) find() {
	x.readHead()
	if !x.call.Find(view.String(x.head.Host())) {
		x.findWatched()
	}
}

// readHead copies the parsed head to the state of the call.
func (x *wire) readHead() {
	h := &x.head
	x.minor, x.closing, x.begun, x.named = h.Minor, !h.KeepAlive, false, false
	path := view.String(h.Path())
	if h.PathEscaped {
		// The parser has already refused invalid escapes.
		x.canon, _ = semantics.AppendCanonical(x.canon[:0], path)
		path = view.String(x.canon)
	}
	method := h.Method.String()
	if h.Method == semantics.MethodOther {
		method = x.s.Strings.Copy(h.MethodBytes())
	}
	x.s.Set(method, path, view.String(h.Query()), true)
}

// findWatched routes the request where routing runs code of the app, which may block like an action.
func (x *wire) findWatched() {
	x.phase.Routes(true)
	x.d.Enter()
	x.call.FindCarefully(view.String(x.head.Host()))
	inline := x.d.Inline()
	if stayed := x.d.Leave(); inline && !stayed {
		x.inFlight.End()
	}
	x.phase.Routes(false)
}

// tooSlowForLoop reports whether a worker must run the request: its route is known to block, and the driver has a loop to run.
// When MaxConcurrent actions are blocked, a request for a route with a recent record of blocking also goes to a worker. Above
// MaxConcurrent, one recent block is enough. Critical routes are exempt from these two rules.
func (x *wire) tooSlowForLoop() bool {
	route := x.s.Route
	if route.NoRoute || !x.d.Inline() || !route.Blocking.Suspect() {
		return false
	}
	return route.Blocking.ToWorker(x.d, route.Critical)
}

// answer runs the action and appends the response.
func (x *wire) answer() progress {
	if limit := x.handler.server.MaxRequestsPerConnection; limit > 0 {
		x.c.Count++
		x.closing = x.closing || int(x.c.Count) >= limit
	}
	inline := x.d.Inline()
	if !inline {
		x.inFlight.Begin(x.count.On, &x.s.Route.Counts)
	}
	if x.s.Route.Timeout > 0 {
		x.d.EnterFor(x.s.Route.Timeout)
	} else {
		x.d.Enter()
	}
	route := x.s.Route
	x.d.Watch(route.Blocking.Watched())
	resp := x.call.Run()
	waited, streamWaited := x.d.Waited() && x.body != startedEarly, false // do not count the wait of an action that was waiting for its own body
	if x.head.HasBody() {
		x.learnBody()
	}
	streams := resp.Kind() == exchange.Later
	if streams {
		if x.mayMoveToBackground() && (resp.Own().Lasts || inline && !x.s.Route.NoRoute && x.s.Route.Streams.Blocking(x.d.Now())) {
			return x.moveToBackground(&resp, waited)
		}
		if len(x.after) <= smallAfter && x.stdBody == nil && x.d.Claim() { // otherwise the timeout response could read the head while moveInput moves it
			x.moveInput()
			x.d.Release()
		}
		x.phase.Produces(inline)
		x.beginAnswering()
		x.d.Watch(route.Streams.Watched())
		resp = x.call.Produce(resp)
		streamWaited = x.d.Waited()
		x.phase.Produces(false)
	}
	if x.stdBody != nil {
		x.closeStdBody()
	}
	stayed := x.d.Leave()
	if x.d.Expired() {
		return x.dropLate(&resp)
	}
	x.count.Add(x.d, &route.Counts, x.outcome(&resp))
	if !stayed {
		x.inFlight.End()
		x.count.Flush(x.d)
	}
	if stayed && !route.NoRoute { // Detached counts calls that lost their loop; a call on a worker may have waited for other workers
		route.Blocking.Stayed(waited, x.d.Now())
		if streams {
			route.Streams.Stayed(streamWaited, x.d.Now())
		}
	}
	return x.conclude(&resp)
}

// beginAnswering marks the response as being sent. From now on the request does not count against Config.Limits.MaxConcurrent.
func (x *wire) beginAnswering() {
	if x.phase.Answers() {
		x.d.Answering()
	}
}

// conclude sends the final response of a request and ends the request.
func (x *wire) conclude(resp *exchange.Answer) progress {
	if x.s.Watched {
		x.observe(*resp)
	}
	if x.planned != nil && x.planned.protocol != nil {
		resp.Release()
		return x.switchTo(x.planned.protocol)
	}
	if x.hijacked {
		x.end()
		return connectionOver
	}
	if resp.Kind() == exchange.Abort || x.deadlines != nil && passed(x.writeBy()) {
		resp.Release()
		x.cut()
		x.end()
		return connectionOver
	}
	if x.body != received {
		x.stream.skipHere()
	}
	if x.d.Draining() && !x.begun || // a begun answer has already promised to keep the connection
		x.body != received && x.stream.tooMuchLeft() {
		x.closing = true
	}
	x.respond(resp)
	if x.body != received && !x.closing && !x.stream.finish() {
		x.closing = true
	}
	pipelined := x.head.KeepAlive // the client may have sent more requests
	x.end()
	if x.closing {
		if x.body != received || pipelined {
			x.c.CloseLingering()
		} else {
			x.c.CloseAfterFlush()
		}
		return connectionOver
	}
	return moreRequests
}

// cut closes the connection without an answer. The answers to earlier requests are still sent.
func (x *wire) cut() {
	switch {
	case !x.begun:
		x.c.CloseAfterFlush()
	case x.begunAt >= 0:
		x.d.Out = x.d.Out[:x.begunAt]
		x.c.CloseAfterFlush()
	default:
		x.c.Close() // the client must not take a partial answer for a complete one
	}
}

// end releases the state of the request.
func (x *wire) end() {
	if x.cancel != nil {
		if !x.d.Expired() { // else it belongs to another driver
			x.c.SetHangup(nil)
		}
		x.cancel()
		x.local.release()
		x.cancel, x.ctx, x.local = nil, nil, nil
	}
	if x.std != nil {
		exchange.RemoveForm(x.std)
	}
	x.endEarly()
	x.undated, x.duplex = false, false
	x.phase.End()
	x.std, x.after, x.hijacked, x.chunked = nil, nil, false, nil
	x.deadlines = nil
	x.call.End()
	x.kept = keep(x.kept)
	if cap(x.canon) > keptUnfinished {
		x.canon = nil
	}
}

func (x *wire) Host() string { return x.s.Strings.Copy(x.head.Host()) }

// fewFields is the largest number of field lines that is searched directly for each name. In a larger head, a set of the field
// names is consulted first.
const fewFields = 10

// lacks reports whether the request surely has no field of that name. Most lookups are for absent fields.
func (x *wire) lacks(name string) bool {
	if x.head.Len() <= fewFields {
		return false // the lookup decides
	}
	if !x.named {
		x.names, x.named = x.head.Names(), true
	}
	return x.names.Lacks(name)
}

func (x *wire) Header(name string) (string, bool) {
	if x.lacks(name) {
		return "", false
	}
	v, ok := x.head.Get(name)
	if !ok {
		return "", false
	}
	return x.s.Strings.Copy(v), true
}

func (x *wire) List(name string) string {
	if x.lacks(name) {
		return ""
	}
	first, second := x.head.Lines(name)
	if first < 0 {
		return ""
	}
	_, value := x.head.Field(first)
	if second < 0 {
		return view.String(value)
	}
	return x.join(name, value, second)
}

// join returns the combined values of a field that was sent in several lines: first and the values from line i on.
func (x *wire) join(name string, first []byte, i int) string {
	all, between := append([]byte(nil), first...), exchange.Separator(name)
	for ; i >= 0; i = x.head.Index(name, i+1) {
		_, value := x.head.Field(i)
		all = append(append(all, between...), value...)
	}
	return view.String(all)
}

func (x *wire) Glance(name string, client bool) (named bool, origin string, ip, now int64) {
	forwarded, proxies := "", x.handler.proxies
	if ip = -1; client {
		if n, ok := x.c.Remote4(); ok {
			ip = int64(n)
			if proxies != nil && proxies.Trusts4(n) {
				forwarded = proxies.Header
			}
		}
	}
	named, from, list, twice := x.head.Three(name, "Origin", forwarded)
	if twice {
		return exchange.GlanceAt(x, name)
	}
	if list != nil {
		ip = proxies.Client4(view.String(list))
	}
	if ip >= 0 {
		now = x.d.Turn()
	}
	return named, view.String(from), ip, now
}

func (x *wire) Among(names *exchange.Names) (set uint64) {
	for i := range x.head.Len() {
		name, _ := x.head.Field(i)
		set |= names.Set(view.String(name))
	}
	if x.head.NamesFields() {
		set |= names.NamesFields
	}
	return set
}

func (x *wire) Headers(yield func(name, value string) bool) {
	for i := range x.head.Len() {
		name, value := x.head.Field(i)
		if !yield(http.CanonicalHeaderKey(x.s.Strings.Copy(name)), x.s.Strings.Copy(value)) {
			return
		}
	}
}

func (x *wire) ContentLength() int64 {
	switch {
	case x.head.Chunked:
		return -1
	case x.head.ContentLength < 0:
		return 0
	}
	return x.head.ContentLength
}

// Received returns the unread part of the body if the body has arrived completely.
func (x *wire) Received() ([]byte, bool) {
	if x.body != received {
		return nil, false
	}
	return x.whole.Unread(), true
}

func (x *wire) Remote() netip.AddrPort { return x.c.RemoteAddr() }

func (x *wire) Now() time.Time { return x.d.Time() }

func (x *wire) Version() string { return "1." + strconv.Itoa(int(x.head.Minor)) }

func (x *wire) Spelling() string {
	path := x.head.Path()
	if x.head.EmptyQuery() {
		path = append(path[:len(path):len(path)], '?')
	} else if !x.head.PathEscaped {
		return ""
	}
	return x.s.Strings.Copy(path)
}

func (x *wire) Secure() bool { return x.c.Secure() }

func (x *wire) TLS() *tls.ConnectionState { return x.c.TLS() }

// viewsRequest reports whether body is stored in memory borrowed from the request, so that it must be copied before the request
// ends.
func (x *wire) viewsRequest(body string) bool {
	for _, lent := range [][]byte{x.s.Whole, x.whole.Bytes} {
		if view.Within(body, lent) {
			return true
		}
	}
	return false
}
