//go:build linux

package loophttp

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/looph2"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A wire is what a driver of the loop engine carries from request to
// request: the call in the pipeline, the parsed head it stands on, and the state of the
// answer. It is the exchange.Wire of its call.
type wire struct {
	handler *handler
	call    exchange.Call
	s       *exchange.State // that of call
	head    http1.Head
	names   http1.Names    // of head's fields, where named
	opening *http1.Opening // made when first needed
	canon   []byte         // the canonical path, when the one sent has escapes

	// Of the current call.
	d     *engine.Driver
	c     *engine.Conn
	given int // bytes of input it was given

	// The connection, the driver's output and the state of body and answer are
	// used by one goroutine at a time, which holds using. It is free while an
	// operation waits, so that reading and writing are independent: reading is
	// held all through the reading of the body, writing all through a write. They are
	// locked in this order: reading, writing, using.
	reading, writing, using sync.Mutex

	// Of the current request.
	stream    *bodyStream        // its body, when the action reads it from the connection; made when first needed
	whole     []byte             // its body, when it is here
	reader    *exchange.Reader   // of that, once somebody reads it
	chunked   *http1.Chunked     // what decoded whole, nil if it was not chunked
	gathered  *unfinished        // the memory of head and body, if they came in pieces and no response took it over
	minor     uint8              // the client's minor version
	streaming bool               // stream is in use
	early     bool               // stream is a small body that was not waited for any longer
	duplex    bool               // the action reads and writes at the same time
	undated   bool               // the answer has no Date
	routing   bool               // between Enter and Leave of findWatched
	closing   bool               // the connection closes after the answer
	begun     bool               // the head of a streamed answer is in the output
	inPlace   bool               // head and whole lie in the input
	moved     bool               // the input of the call lies elsewhere now, see moveInput
	hijacked  bool               // the connection is not ours any more
	expired   bool               // likewise, because the action was late
	produces  atomic.Bool        // a stream is being carried out on the loop
	answering atomic.Bool        // what runs sends an answer that is not made in whole
	target    exchange.Target    // what was asked for, 0 unless it was to wait for room
	begunAt   int                // where in the output the begun answer begins, -1 if part of it was sent
	planned   *planned           // what goes on in the background
	kept      []byte             // ... or in here, after moveInput
	cancel    context.CancelFunc // of ctx
	ctx       context.Context    // made when first asked for
	local     *localContext      // what it derives from
	std       *http.Request      // made when first asked for
	stdBody   *stdBody           // that of std, until it is closed
	after     []byte             // the input after the request
	deadlines *deadlines         // of a standard handler, nil for none

	count counter

	h2      *looph2.Scratch // made when first needed
	inParts bool            // a call is about streams of HTTP/2
	named   bool            // names is that of head
	wary    uint8           // visits that are to be watched closely, see visit.go
	claims  int32           // calls of claim without unclaim
}

// serveNext takes the next step on the connection, which has sent in: it
// answers one request, or keeps what is unfinished. It returns how many bytes
// it is done with.
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
		if x.handler.upgrades && x.upgrade(in[n:]) {
			return n, changedProtocol
		}
		return x.serveWhole(in, n, nil)
	}
	return x.serveHead(in, n)
}

// serveHead goes on with the complete head in in[:n], behind which there is a body: it finds
// out where.
func (x *wire) serveHead(in []byte, n int) (int, progress) {
	h := &x.head
	rest := in[n:]
	length := h.ContentLength
	switch {
	case !h.Expect100 && !h.Chunked && int64(len(rest)) >= length:
		return x.serveWhole(in, n+int(length), rest[:length])
	case !h.Chunked && length > x.handler.server.Pipeline.LeastBody() && x.tooLong(length):
		return x.serveStreamed(in, n) // the client need not send what will be refused
	case !h.Expect100 && (h.Chunked || length <= smallBody):
		u := x.newUnfinished()
		u.setRaw(h.Bytes())
		h.CopyTo(&u.head, u.raw)
		u.complete = true
		u.chunked.Reset(&x.handler.limits, -1)
		x.gather(u)
		taken, next := x.serveGathered(u, rest)
		if next == needInput {
			x.d.Recall() // a body that comes in two pieces needs no goroutine
		}
		return n + taken, next
	}
	return x.serveStreamed(in, n)
}

// taken is how much of n bytes the step that ends so has used.
func taken(n int, next progress) int {
	if next == needRoom {
		return 0
	}
	return n
}

// tooLong reports whether a body is longer than its route takes.
func (x *wire) tooLong(length int64) bool {
	x.find()
	return length > x.handler.server.MaxBodyOf(x.s.Route)
}

// serveWhole answers a request that is here in full: its head and body are
// in[:n].
func (x *wire) serveWhole(in []byte, n int, body []byte) (int, progress) {
	x.whole, x.reader, x.streaming, x.after, x.inPlace = body, nil, false, in[n:], true
	x.find()
	if x.overdue() {
		return n, x.shed()
	}
	if x.s.Route.Pace.Suspect() && x.tooSlowForLoop() {
		return 0, needWorker
	}
	if x.expectsMuch() {
		if next, done := x.awaitRoom(); done {
			return taken(n, next), next
		}
	}
	return n, x.answer()
}

// serveStreamed answers a request whose body the action reads from the
// connection: it is large, or the client waits to be asked for it.
func (x *wire) serveStreamed(in []byte, n int) (int, progress) {
	x.whole, x.reader, x.streaming, x.inPlace = nil, nil, true, true
	x.find()
	if x.overdue() {
		x.closing = true // the body is on its way
		return n, x.shed()
	}
	if x.tooSlowForLoop() {
		return 0, needWorker
	}
	if x.expectsMuch() {
		if next, done := x.awaitRoom(); done {
			return taken(n, next), next
		}
	}
	x.needStream()
	x.stream.begin(x, in[n:])
	next := x.answer()
	return n + x.stream.taken, next
}

// find makes the call of the parsed head and finds its action.
func (x *wire) find() {
	x.readHead()
	if !x.call.Find(view.String(x.head.Host())) {
		x.findWatched()
	}
}

// readHead makes the state that of the parsed head.
func (x *wire) readHead() {
	h := &x.head
	x.minor, x.closing, x.begun, x.named, x.target = h.Minor, !h.KeepAlive, false, false, 0
	path := view.String(h.Path())
	if h.PathEscaped {
		// The parser has refused bad escapes.
		x.canon, _ = exchange.AppendCanonical(x.canon[:0], path)
		path = view.String(x.canon)
	}
	method := h.Method.String()
	if h.Method == http1.MethodOther {
		method = x.s.Strings.Copy(h.MethodBytes())
	}
	x.s.Set(method, path, view.String(h.Query()), true)
}

// findWatched has the request routed by code that may block, as an action may.
func (x *wire) findWatched() {
	x.routing = true
	x.d.Enter()
	x.call.FindCarefully(view.String(x.head.Host()))
	inline := x.d.Inline()
	if stayed := x.d.Leave(); inline && !stayed {
		x.endInFlight()
	}
	x.routing = false
}

// tooSlowForLoop reports whether the request belongs to a route that is known
// to block, on a driver that has a loop to run. While as many actions wait as may,
// those of a route that has blocked lately wait for their turn: on the loop they would
// pass the bound. One that blocks seldom waits, too, when it is passed already.
func (x *wire) tooSlowForLoop() bool {
	route := x.s.Route
	if route.NoRoute || !x.d.Inline() || !route.Pace.Suspect() {
		return false
	}
	return route.Pace.ToWorker(x.d, route.Critical)
}

// answer runs the action and appends the response.
func (x *wire) answer() progress {
	if most := x.handler.server.MaxRequestsPerConnection; most > 0 {
		x.c.Count++
		x.closing = x.closing || int(x.c.Count) >= most
	}
	inline := x.d.Inline()
	if !inline {
		x.countInFlight()
	}
	if x.s.Route.Timeout > 0 {
		x.d.EnterFor(x.s.Route.Timeout)
	} else {
		x.d.Enter()
	}
	route := x.s.Route
	x.d.Watch(route.Pace.Watched())
	resp := x.call.Run()
	waited, streamWaited := x.d.Waited() && !x.early, false // else it may be its client that it waited for
	if x.head.HasBody() {
		x.learnBody()
	}
	streams := resp.Kind() == exchange.Later
	if streams {
		if x.mayMoveToBackground() && (resp.Own().Lasts || inline && !x.s.Route.NoRoute && x.s.Route.Streams.Blocking(x.d.Now())) {
			return x.moveToBackground(&resp, waited)
		}
		if len(x.after) <= smallAfter && x.stdBody == nil && x.d.Claim() { // an answer without the action reads the head
			x.moveInput()
			x.d.Release()
		}
		x.produces.Store(inline)
		x.beginAnswering()
		x.d.Watch(route.Streams.Watched())
		resp = x.call.CarryOut(resp)
		streamWaited = x.d.Waited()
		x.produces.Store(false)
	}
	if x.stdBody != nil {
		x.closeStdBody()
	}
	stayed := x.d.Leave()
	if x.d.Expired() {
		return x.dropLate(&resp)
	}
	if counts, outcome := &route.Counts, x.outcome(&resp); counts == x.count.counts && outcome == x.count.outcome {
		x.count.n++ // like the one before
	} else {
		x.countOther(counts, outcome)
	}
	if !stayed {
		x.endInFlight()
		x.flushCount()
	}
	if stayed && !route.NoRoute { // see Detached; and workers wait for each other
		route.Pace.Stayed(waited, x.d.Now())
		if streams {
			route.Streams.Stayed(streamWaited, x.d.Now())
		}
	}
	return x.conclude(&resp)
}

// beginAnswering says that the action is done with what it may wait for, and its answer
// follows piece by piece: that does not count against Config.MaxConcurrent.
func (x *wire) beginAnswering() {
	if !x.answering.Load() {
		x.answering.Store(true)
		x.d.Answering()
	}
}

// conclude ends a request whose response is settled.
func (x *wire) conclude(resp *exchange.Answer) progress {
	if x.s.Watched {
		x.observe(*resp)
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
	if x.streaming {
		x.stream.skipHere()
	}
	if x.d.Draining() && !x.begun || // else the client has not been told
		x.streaming && x.stream.tooMuchLeft() {
		x.closing = true
	}
	x.respond(resp)
	if x.streaming && !x.closing && !x.stream.finish() {
		x.closing = true
	}
	unasked := x.head.KeepAlive // the client may have sent more requests
	x.end()
	if x.closing {
		if x.streaming || unasked {
			x.c.CloseLingering()
		} else {
			x.c.CloseAfterFlush()
		}
		return connectionOver
	}
	return moreRequests
}

// cut drops the connection instead of an answer. The answers to the requests before
// this one are still sent.
func (x *wire) cut() {
	switch {
	case !x.begun:
		x.c.CloseAfterFlush()
	case x.begunAt >= 0:
		x.d.Out = x.d.Out[:x.begunAt]
		x.c.CloseAfterFlush()
	default:
		x.c.Close() // half an answer is not to be taken for one
	}
}

// end drops what belonged to the request.
func (x *wire) end() {
	if x.cancel != nil {
		if !x.expired {
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
	x.expired, x.undated, x.duplex = false, false, false
	if x.answering.Load() {
		x.answering.Store(false)
	}
	x.std, x.after, x.hijacked, x.chunked = nil, nil, false, nil
	x.deadlines = nil
	x.call.End()
	x.kept = keep(x.kept)
	if cap(x.canon) > keptUnfinished {
		x.canon = nil
	}
}

func (x *wire) Host() string { return x.s.Strings.Copy(x.head.Host()) }

// fewFields is up to how many field lines are looked through for each name that is asked for, without a set of their names.
const fewFields = 10

// lacks reports that the request has no field of a name: most that are looked for are not there.
func (x *wire) lacks(name string) bool {
	if x.head.Len() <= fewFields {
		return false // who looks will see
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

// join returns the values of a field that was sent in several lines, the first and those from line i on.
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

// Received returns the body when it is here in whole, without what was read of it.
func (x *wire) Received() ([]byte, bool) {
	switch {
	case x.streaming:
		return nil, false
	case x.reader != nil:
		return x.reader.Rest, true
	}
	return x.whole, true
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

// viewsRequest reports whether a response body lies in memory that the
// request lent, and so must be copied before the request ends.
func (x *wire) viewsRequest(body string) bool {
	for _, lent := range [][]byte{x.s.Whole, x.whole} {
		if view.Within(body, lent) {
			return true
		}
	}
	return false
}
