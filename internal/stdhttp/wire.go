package stdhttp

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ServeHTTP answers a request of any net/http server. The limits of a Server do not apply.
func (s *Service) ServeHTTP(w http.ResponseWriter, req *http.Request) { s.answer(w, req, false) }

// answer is ServeHTTP. direct means that w is net/http's own writer for HTTP/1.
func (s *Service) answer(w http.ResponseWriter, req *http.Request, direct bool) {
	x := s.wires.Get().(*wire)
	x.w, x.Req, x.direct = w, req, direct
	path := req.URL.Path
	if path == "" && req.Method != http.MethodConnect {
		path = "/" // RFC 9110 section 4.2.3; also the result of http.StripPrefix
	}
	// A path that shares the start of the target was not unescaped.
	if !view.SharesStart(path, req.RequestURI) && (req.URL.RawPath != "" || strings.IndexByte(path, '%') >= 0) {
		var bad int
		if x.canon, bad = semantics.AppendCanonical(x.canon[:0], req.URL.EscapedPath()); bad < 0 {
			path = x.s.Strings.Copy(x.canon)
		}
		// net/http has refused bad escapes. A URL set by a handler is not checked again.
	}
	x.s.Set(req.Method, path, req.URL.RawQuery, false)
	if !x.call.Find(req.Host) {
		x.call.FindCarefully(req.Host)
	}
	route := x.s.Route
	if !route.NoRoute {
		req.Pattern = route.Pattern // as http.ServeMux does, for later readers
	}
	if x.s.Watched {
		x.call.Clock()
	}
	if s.Counting.Load() {
		defer endCount(x.startCount())
	}
	if route.Timeout > 0 {
		if !x.answerWithin(route) {
			return // the action is late and still owns the wire
		}
	} else {
		x.answer()
	}
	x.release()
}

// wire is a net/http request and its answer. It is pooled.
type wire struct {
	exchange.StdHead
	service *Service
	call    exchange.Call
	s       *exchange.State // the state of call
	w       http.ResponseWriter
	ctx     context.Context // from Endable
	own     context.Context // the original context, once req has another one with values of middleware
	race    *exchange.Race  // between the action and its timeout
	count   counter
	number  int    // of all wires of the service: distributes them over shards
	canon   []byte // the canonical path, while it is computed
	copied  bool   // req is our own copy
	bodied  bool   // ... with a body of its own, if necessary
	matched bool   // ... with the matched pattern
	duplex  bool   // the action reads and writes concurrently
	inner   bool   // the request of an action inside standard middleware
	direct  bool   // w is net/http's own writer for HTTP/1
	begun   bool   // the head of a streamed answer was sent

	holder    *holder            // created on first use
	timedBody *TimedBody         // created on first use
	replay    *exchange.LentBody // for standard handlers, if the pipeline has read the body
}

// newWire returns an unused wire.
func (s *Service) newWire() *wire {
	x := &wire{service: s, number: int(s.made.Add(1))}
	x.call = s.Pipeline.NewCall(x)
	x.s = x.call.State()
	return x
}

// answer runs the action and sends its response.
func (x *wire) answer() {
	resp := exchange.Finish(x.call)
	if x.count.shard != nil {
		x.count.end(x.s, &resp)
	}
	x.observe(resp)
	if resp.IsBare() && !exchange.BodyAllowed(resp.Status()) && resp.Kind() == exchange.Complete {
		x.skipBody()
		x.w.WriteHeader(resp.Status()) // NoContent needs no more
		return
	}
	x.sendSettled(&resp)
}

// observe informs the observers before the answer is sent.
func (x *wire) observe(resp exchange.Answer) {
	if x.s.Watched {
		x.call.Observe(resp, -1)
	}
}

// answerAlone sends an answer without an action.
func (x *wire) answerAlone(resp exchange.Answer, source exchange.Source) {
	resp = x.call.Decorate(resp, source)
	x.observe(resp)
	x.sendSettled(&resp)
}

// sendSettled sends a settled answer.
func (x *wire) sendSettled(resp *exchange.Answer) {
	x.send(resp)
	resp.Release()
}

// release returns the wire to the pool. After an abort by panic the wire is left to the collector, since the action
// may still use it.
func (x *wire) release() {
	x.call.End()
	if x.replay != nil {
		x.replay.End()
		x.replay = nil
	}
	x.removeForm()
	x.stopBody()
	x.w, x.Req, x.ctx, x.own, x.race = nil, nil, nil, nil, nil
	x.copied, x.bodied, x.matched, x.duplex, x.inner, x.direct, x.begun = false, false, false, false, false, false, false
	if x.timedBody != nil {
		x.timedBody.Stop()
		x.timedBody = nil
	}
	if !invariants.Enabled { // in race builds each request has its own, which knows when it has ended
		x.service.wires.Put(x)
	}
}

func (x *wire) Context() context.Context {
	if x.ctx != nil {
		return x.ctx
	}
	return x.lasting()
}

// lasting returns the context that only the server cancels.
func (x *wire) lasting() context.Context {
	if x.own != nil {
		return x.own
	}
	return x.Req.Context()
}

func (x *wire) Endable() (ctx context.Context, end context.CancelFunc) {
	x.ctx, end = context.WithCancel(x.lasting())
	return x.ctx, end
}

// Begin sends a head. net/http chooses the framing.
func (x *wire) Begin(resp *exchange.Answer, length int64) exchange.Sink {
	if !x.race.Begin() {
		return exchange.LateSink{}
	}
	x.begun = true
	x.skipBody()
	h, status := x.w.Header(), resp.Status()
	resp.SetIn(h, &x.s.Strings)
	if length >= 0 && exchange.BodyAllowed(status) {
		h["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	}
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // otherwise net/http would sniff one
	}
	x.w.WriteHeader(status)
	return (*sink)(x)
}

func (x *wire) Sink() exchange.Sink { return (*sink)(x) }

// Interim sends a response with a status below 200. It has its own headers.
func (x *wire) Interim(status int, h http.Header) {
	x.race.WhileMine(func() {
		all := x.w.Header()
		outer := maps.Clone(all)
		maps.Copy(all, h)
		// With this field, which it leaves out, net/http copies the map. Else its HTTP/2 may still read the map when WriteHeader has
		// returned because the stream is over, and the process ends by a concurrent map write.
		all["Content-Length"] = nil
		x.w.WriteHeader(status)
		clear(all)
		maps.Copy(all, outer)
	})
}

func (x *wire) CloseAfter() {
	x.race.WhileMine(func() { x.w.Header().Set("Connection", "close") })
}

func (x *wire) OmitDate() {
	x.race.WhileMine(func() { x.w.Header()["Date"] = nil })
}

func (x *wire) Abandoned() {
	dropped := exchange.Bare(0, exchange.Abort)
	x.count.end(x.s, &dropped)
	if x.race == nil && !x.inner {
		x.observe(dropped)
	}
	x.stopBody()
}

// send writes the response. A failed write means that the client has disconnected.
func (x *wire) send(resp *exchange.Answer) {
	switch kind := resp.Kind(); {
	case kind == exchange.Sent:
		return
	case kind == exchange.Abort, x.begun: // no error answer can follow a partial answer
		x.call.Abandon() // release will not
		x.stopBody()
		panic(http.ErrAbortHandler)
	}
	x.skipBody()
	status := resp.Status()
	h := x.w.Header()
	resp.SetIn(h, &x.s.Strings)
	if exchange.BodyAllowed(status) {
		if base := resp.Base(); resp.Body != "" && (base == nil || !base.Typed) && !resp.Has("Content-Type") {
			h["Content-Type"] = nil // otherwise net/http would sniff one
		}
		if n := resp.Announced(); n != exchange.NoLength && !x.isCounted(h, resp) {
			h["Content-Length"] = lengthValues(n, &x.s.Strings)
		}
	}
	x.w.WriteHeader(status)
	if resp.Body != "" && exchange.BodyAllowed(status) && x.Req.Method != http.MethodHead {
		_, _ = x.w.Write(view.Bytes(resp.Body))
	}
}

// isCounted reports whether net/http sets the length of an answer itself, which is cheaper. net/http sets it if the body
// fits its buffer, unless there are trailers. If Content-Type is the only field in h, there are none.
func (x *wire) isCounted(h http.Header, resp *exchange.Answer) bool {
	return x.direct && len(h) == 1 && resp.Body != "" && len(resp.Body) < serverBuffer && x.Req.Method != http.MethodHead
}

// serverBuffer is the size of net/http's buffer for the start of an answer, in bytes.
const serverBuffer = 2048

// lengths caches the Content-Length values of small bodies.
var lengths [1024]atomic.Pointer[[1]string]

// lengthValues returns n in the form of a header map value.
func lengthValues(n int64, c *exchange.Strings) []string {
	if n < int64(len(lengths)) {
		known := lengths[n].Load()
		if known == nil {
			known = &[1]string{strconv.Itoa(int(n))}
			lengths[n].Store(known)
		}
		return known[:]
	}
	var digits [20]byte
	return c.Values(c.Copy(strconv.AppendInt(digits[:0], n, 10)))
}
