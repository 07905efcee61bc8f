//go:build linux

package loophttp

import (
	"net/http"
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
	request.Base
	handler *handler
	d       *engine.Driver // of the current call of the handler
	locks

	requestHead
	input
	requestBody
	reply
	opening   *http1.Opening // allocated on demand
	planned   *planned       // the rest of the request: it runs in the background, or switches the protocol
	deadlines *deadlines     // deadlines set by a standard handler, nil for none

	count    request.Counter
	inFlight request.InFlight

	claims int32 // calls of claim minus calls of unclaim: while positive, the timeout cannot take the connection
}

// The locks of a wire. mu guards the connection, the driver's output and the state of body and answer. An operation that waits
// releases mu meanwhile, so that reading and writing are independent: readMu is held during the whole read of a body, writeMu
// during the whole write. The lock order is readMu, writeMu, mu.
type locks struct{ readMu, writeMu, mu sync.Mutex }

// beginWrite acquires the locks for writing a part of the answer.
func (l *locks) beginWrite() {
	l.writeMu.Lock()
	l.mu.Lock()
}

func (l *locks) endWrite() {
	l.mu.Unlock()
	l.writeMu.Unlock()
}

// serveNext performs the next step for the input in: it answers one request or stores an unfinished one. It returns the number
// of bytes consumed.
func (x *wire) serveNext(in []byte) (n int, next progress) {
	u, _ := x.Conn.Proto.(*unfinished)
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
			x.Conn.Proto = u
			x.Conn.SetDeadline(x.handler.server.HeadTimeout)
		}
		return 0, needInput
	case u != nil:
		x.head, u.head = u.head, x.head
		x.Conn.Proto = nil
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
	return length > x.handler.server.MaxBodyOf(x.State.Route)
}

// serveWhole answers a complete request: its head and body are in[:n].
func (x *wire) serveWhole(in []byte, n int, body []byte) (int, progress) {
	x.whole, x.body, x.after, x.inPlace = request.Whole{Bytes: body}, received, in[n:], true
	x.find()
	if x.overdue() {
		return n, x.shed()
	}
	if x.State.Route.Blocking.Suspect() && x.TooSlowForLoop(x.d) {
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
	if x.TooSlowForLoop(x.d) {
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
	if !x.Call.Find(view.String(x.head.Host())) {
		x.findWatched()
	}
}

// readHead copies the parsed head to the state of the call.
func (x *wire) readHead() {
	h := &x.head
	x.minor, x.names = h.Minor, 0
	x.closing, x.sending = !h.KeepAlive, unbegun
	path := view.String(h.Path())
	if h.PathEscaped {
		// The parser has already refused invalid escapes.
		x.canon, _ = semantics.AppendCanonical(x.canon[:0], path)
		path = view.String(x.canon)
	}
	method := h.Method.String()
	if h.Method == semantics.MethodOther {
		method = x.State.Strings.Copy(h.MethodBytes())
	}
	x.State.Set(method, path, view.String(h.Query()), true)
}

// findWatched routes the request where routing runs code of the app, which may block like an action.
func (x *wire) findWatched() {
	x.Phase.Routes(true)
	x.d.Enter()
	x.Call.FindCarefully(view.String(x.head.Host()))
	inline := x.d.Inline()
	if stayed := x.d.Leave(); inline && !stayed {
		x.inFlight.End()
	}
	x.Phase.Routes(false)
}

// answer runs the action and appends the response.
func (x *wire) answer() progress {
	if limit := x.handler.server.MaxRequestsPerConnection; limit > 0 {
		x.Conn.Count++
		x.closing = x.closing || int(x.Conn.Count) >= limit
	}
	inline := x.d.Inline()
	if !inline {
		x.inFlight.Begin(x.count.On, &x.State.Route.Counts)
	}
	if x.State.Route.Timeout > 0 {
		x.d.EnterFor(x.State.Route.Timeout)
	} else {
		x.d.Enter()
	}
	route := x.State.Route
	x.d.Watch(route.Blocking.Watched())
	resp := x.Call.Run()
	waited, streamWaited := x.d.Waited() && x.body != startedEarly, false // do not count the wait of an action that was waiting for its own body
	if x.head.HasBody() {
		x.learnBody()
	}
	streams := resp.Kind() == exchange.Later
	if streams {
		if x.mayMoveToBackground() && (resp.Own().Lasts || inline && !x.State.Route.NoRoute && x.State.Route.Streams.Blocking(x.d.Now())) {
			return x.moveToBackground(&resp, waited)
		}
		if len(x.after) <= smallAfter && !x.StdReads() && x.d.Claim() { // otherwise the timeout response could read the head while moveInput moves it
			x.moveInput()
			x.d.Release()
		}
		x.Phase.Produces(inline)
		x.beginAnswering()
		x.d.Watch(route.Streams.Watched())
		resp = x.Call.Produce(resp)
		streamWaited = x.d.Waited()
		x.Phase.Produces(false)
	}
	x.CloseBody()
	stayed := x.d.Leave()
	if x.d.Expired() {
		return x.dropLate(&resp)
	}
	x.count.Add(x.d, &route.Counts, x.Outcome(x.handler.server, &resp))
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

// countAnswer counts the current request.
func (x *wire) countAnswer(a *exchange.Answer) {
	x.count.Add(x.d, &x.State.Route.Counts, x.Outcome(x.handler.server, a))
}

// beginAnswering marks the response as being sent. From now on the request does not count against Config.Limits.MaxConcurrent.
func (x *wire) beginAnswering() {
	if x.Phase.Answers() {
		x.d.Answering()
	}
}

// conclude sends the final response of a request and ends the request.
func (x *wire) conclude(resp *exchange.Answer) progress {
	if x.State.Watched {
		x.observe(*resp)
	}
	if x.planned != nil && x.planned.protocol != nil {
		resp.Release()
		return x.switchTo(x.planned.protocol)
	}
	if x.sending == hijacked {
		x.end()
		return connectionOver
	}
	if resp.Kind() == exchange.Abort || x.deadlines != nil && x.writeBy().Passed() {
		resp.Release()
		x.cut()
		x.end()
		return connectionOver
	}
	if x.body != received {
		x.stream.skipHere()
	}
	if x.d.Draining() && x.sending == unbegun || // a begun answer has already promised to keep the connection
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
			x.Conn.CloseLingering()
		} else {
			x.Conn.CloseAfterFlush()
		}
		return connectionOver
	}
	return moreRequests
}

// end releases the state of the request.
func (x *wire) end() {
	if x.Canceler() != nil && !x.d.Expired() { // else the connection belongs to another driver
		x.Conn.SetHangup(nil)
	}
	x.EndRequest()
	x.endEarly()
	x.duplex = false
	x.after, x.chunked, x.sending = nil, nil, unbegun
	x.deadlines = nil
	x.Call.End()
	x.kept = keep(x.kept)
	if cap(x.canon) > keptUnfinished {
		x.canon = nil
	}
}

func (x *wire) Host() string { return x.State.Strings.Copy(x.head.Host()) }

// A requestHead is the parsed head of a request.
type requestHead struct {
	head  http1.Head
	names http1.Names // the field names of head, 0 if they are not known
	canon []byte      // the canonical path, if the client's path has escapes
}

// fewFields is the largest number of field lines that is searched directly for each name. In a larger head, a set of the field
// names is consulted first.
const fewFields = 10

// lacks reports whether the request surely has no field of that name. Most lookups are for absent fields.
func (h *requestHead) lacks(name string) bool {
	if h.head.Len() <= fewFields {
		return false // the lookup decides
	}
	if h.names == 0 {
		h.names = h.head.Names()
	}
	return h.names.Lacks(name)
}

func (x *wire) Header(name string) (string, bool) {
	if x.lacks(name) {
		return "", false
	}
	v, ok := x.head.Get(name)
	if !ok {
		return "", false
	}
	return x.State.Strings.Copy(v), true
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
		if n, ok := x.Conn.Remote4(); ok {
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
		if !yield(http.CanonicalHeaderKey(x.State.Strings.Copy(name)), x.State.Strings.Copy(value)) {
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

func (x *wire) Now() time.Time { return x.d.Time() }

func (x *wire) Version() string { return "1." + strconv.Itoa(int(x.head.Minor)) }

func (x *wire) Spelling() string {
	path := x.head.Path()
	if x.head.EmptyQuery() {
		path = append(path[:len(path):len(path)], '?')
	} else if !x.head.PathEscaped {
		return ""
	}
	return x.State.Strings.Copy(path)
}

// viewsRequest reports whether body is stored in memory borrowed from the request, so that it must be copied before the request
// ends.
func (x *wire) viewsRequest(body string) bool {
	for _, lent := range [][]byte{x.State.Whole, x.whole.Bytes} {
		if view.Within(body, lent) {
			return true
		}
	}
	return false
}
