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

// ServeHTTP answers a request of any net/http server. The limits of a Server do not apply to it.
func (s *Service) ServeHTTP(w http.ResponseWriter, req *http.Request) { s.answer(w, req, false) }

// answer does the work of ServeHTTP. direct reports whether w is net/http's own writer for HTTP/1.
func (s *Service) answer(w http.ResponseWriter, req *http.Request, direct bool) {
	x := s.wires.Get().(*wire)
	x.w, x.Req, x.direct = w, req, direct
	path := req.URL.Path
	if path == "" && req.Method != http.MethodConnect {
		path = "/" // see RFC 9110 section 4.2.3; http.StripPrefix also makes the path empty
	}
	// If path shares memory with the start of the target, it was not unescaped.
	if !view.SharesStart(path, req.RequestURI) && (req.URL.RawPath != "" || strings.IndexByte(path, '%') >= 0) {
		var bad int
		if x.canon, bad = semantics.AppendCanonical(x.canon[:0], req.URL.EscapedPath()); bad < 0 {
			path = x.s.Strings.Copy(x.canon)
		}
		// net/http has already refused bad escapes. A URL that a handler has set is not checked again.
	}
	x.s.Set(req.Method, path, req.URL.RawQuery, false)
	if !x.call.Find(req.Host) {
		x.call.FindCarefully(req.Host)
	}
	route := x.s.Route
	if !route.NoRoute {
		req.Pattern = route.Pattern // as http.ServeMux does; later code may read it
	}
	if x.s.Watched {
		x.call.Clock()
	}
	if s.Counting.Load() {
		defer endCount(x.startCount())
	}
	if route.Timeout > 0 {
		if !x.answerWithin(route) {
			return // the action has exceeded its time limit and still owns the wire
		}
	} else {
		x.answer()
	}
	x.release()
}

// wire is a net/http request and its answer. Wires are pooled.
type wire struct {
	exchange.StdHead
	service *Service
	call    exchange.Call
	s       *exchange.State // the state in call
	w       http.ResponseWriter
	ctx     context.Context // result of Endable
	own     context.Context // the original context, if Req has another context with values of middleware
	race    *exchange.Race  // decides whether the action or its timeout comes first
	count   counter
	number  int    // number of the wire in the service, to distribute wires over shards
	canon   []byte // buffer for the canonical path
	copied  bool   // Req is a copy that belongs to the wire
	bodied  bool   // the copy has another body
	matched bool   // the copy has the matched pattern
	duplex  bool   // the action reads the body and writes the answer at the same time
	inner   bool   // the request comes from standard middleware, see ServeInner
	direct  bool   // w is net/http's own writer for HTTP/1
	begun   bool   // the head of a streamed answer was sent

	holder    *holder            // created on first use
	timedBody *TimedBody         // created on first use
	replay    *exchange.LentBody // for standard handlers, if the pipeline has read the body
}

// newWire returns a new wire of the service.
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
		x.w.WriteHeader(resp.Status()) // NoContent has no fields and no body
		return
	}
	x.sendSettled(&resp)
}

// observe calls the observers before the answer is sent.
func (x *wire) observe(resp exchange.Answer) {
	if x.s.Watched {
		x.call.Observe(resp, -1)
	}
}

// answerAlone sends an answer for which no action runs.
func (x *wire) answerAlone(resp exchange.Answer, source exchange.Source) {
	resp = x.call.Decorate(resp, source)
	x.observe(resp)
	x.sendSettled(&resp)
}

// sendSettled sends an answer that has passed all features.
func (x *wire) sendSettled(resp *exchange.Answer) {
	x.send(resp)
	resp.Release()
}

// release returns the wire to the pool. If a panic has ended the answer, the wire is not reused, because the action may still use
// it.
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
	if !invariants.Enabled { // in race builds each request has its own state, which records that the request has ended
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

// Begin sends the head of an answer. net/http chooses the framing.
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
		h["Content-Type"] = nil // prevents net/http from detecting the type in the body
	}
	x.w.WriteHeader(status)
	return (*sink)(x)
}

func (x *wire) Sink() exchange.Sink { return (*sink)(x) }

// Interim sends a response with a status below 200. The fields in h belong to this response only.
func (x *wire) Interim(status int, h http.Header) {
	x.race.WhileMine(func() {
		all := x.w.Header()
		outer := maps.Clone(all)
		maps.Copy(all, h)
		// Because of this field, which net/http does not send, net/http copies the map. Without the copy, its HTTP/2 code may still
		// read the map after WriteHeader has returned because the stream has ended. The concurrent write to the map would end the
		// process.
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

// send writes the answer. An error of a write is ignored, because it means that the client has disconnected.
func (x *wire) send(resp *exchange.Answer) {
	switch kind := resp.Kind(); {
	case kind == exchange.Sent:
		return
	case kind == exchange.Abort, x.begun: // no error response can follow a part of an answer
		x.call.Abandon() // in place of End, because the panic skips release
		x.stopBody()
		panic(http.ErrAbortHandler)
	}
	x.skipBody()
	status := resp.Status()
	h := x.w.Header()
	resp.SetIn(h, &x.s.Strings)
	if exchange.BodyAllowed(status) {
		if base := resp.Base(); resp.Body != "" && (base == nil || !base.Typed) && !resp.Has("Content-Type") {
			h["Content-Type"] = nil // prevents net/http from detecting the type in the body
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

// isCounted reports whether net/http sets Content-Length itself, which costs less. net/http does so if the body fits its buffer and
// the answer has no trailers. An answer whose only field in h is Content-Type has no trailers.
func (x *wire) isCounted(h http.Header, resp *exchange.Answer) bool {
	return x.direct && len(h) == 1 && resp.Body != "" && len(resp.Body) < serverBuffer && x.Req.Method != http.MethodHead
}

// serverBuffer is the size in bytes of the buffer in which net/http collects the start of an answer.
const serverBuffer = 2048

// lengths caches the values of Content-Length for small bodies.
var lengths [1024]atomic.Pointer[[1]string]

// lengthValues returns n as the values of a field in a header map.
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
