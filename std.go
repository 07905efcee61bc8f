package dunlin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/stdhttp"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// ServeHTTP answers a request of net/http: an App is an http.Handler, to be
// served by any server, mounted in any mux and wrapped by any middleware.
func (a *App) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := a.exchanges.Get().(*stdExchange)
	x.w, x.req = w, req
	path := req.URL.Path
	if path == "" && req.Method != http.MethodConnect {
		path = "/" // RFC 9110 section 4.2.3; also what http.StripPrefix leaves
	}
	// A path that is the very beginning of the target was not unescaped.
	if !view.SharesStart(path, req.RequestURI) && (req.URL.RawPath != "" || strings.IndexByte(path, '%') >= 0) {
		var err error
		if x.request.scratch, err = router.Canonical(x.request.scratch[:0], req.URL.EscapedPath()); err == nil {
			path = x.request.s.Strings.Copy(x.request.scratch)
		}
		// net/http has refused bad escapes; a handler that set a URL of its own
		// is taken at its word.
	}
	r := &x.request
	r.begin(req.Method, path, req.URL.RawQuery, false)
	act := a.find(r, req.Host)
	if r.route != nil {
		req.Pattern = r.s.Route.Pattern // as http.ServeMux does, for who looks at it afterwards
	}
	if len(a.observers) > 0 {
		r.watched().since = time.Now()
	}
	if a.counting.Load() {
		defer leave(x.startCount())
	}
	if r.s.Route.Timeout > 0 {
		if !x.answerWithin(act, r.s.Route) {
			return // the action is late and still has the exchange
		}
	} else {
		x.answer(act)
	}
	x.release()
}

// stdExchange is a request and its answer on net/http. Pooled.
type stdExchange struct {
	request Request
	w       http.ResponseWriter
	req     *http.Request
	ctx     context.Context // after endable
	race    *stdRace        // under a limit, between the action and the clock
	count   stdCount
	number  int  // of all exchanges of the app: spreads them over shards
	copied  bool // req is our own copy
	bodied  bool // ... with a body of our own, if it needs one
	matched bool // ... and says what was matched
	duplex  bool // the action reads and writes at the same time

	holder    *stdHolder         // made when it first holds something
	timedBody *stdhttp.TimedBody // made when the body is first asked for
}

// answer runs the action and sends what it returns.
func (x *stdExchange) answer(act Action) {
	var resp Response
	x.request.app.run(act, &x.request, &resp)
	if resp.a.Own() != nil || resp.a.Kind() != exchange.Complete || x.request.app.servers.IsDraining() || len(x.request.app.policies) > 0 || x.request.suspended != nil {
		x.request.app.settle(&x.request, &resp)
	}
	if x.count.shard != nil {
		x.count.end(resp.a.Class())
	}
	x.observe(&resp.a)
	if resp.a.IsBare() && !exchange.BodyAllowed(resp.a.Status()) && resp.a.Kind() == exchange.Complete {
		x.skipBody()
		x.w.WriteHeader(resp.a.Status()) // NoContent: nothing else to say
		return
	}
	x.sendSettled(&resp.a)
}

// tooManyHeaders answers a request with more headers than MaxHeaders. Their lines
// are not counted again: net/http has bounded their bytes.
func (a *App) tooManyHeaders(w http.ResponseWriter, req *http.Request) {
	resp := Problem(ProblemDetails{
		Status: http.StatusRequestHeaderFieldsTooLarge,
		Detail: fmt.Sprintf("too many fields (the limit is %d)", a.config.MaxHeaders),
	})
	w.Header().Set("Connection", "close")
	x := a.exchanges.Get().(*stdExchange)
	x.w, x.req = w, req
	x.request.begin(req.Method, req.URL.Path, req.URL.RawQuery, false)
	x.answerAlone(&resp, FromProtocol)
	x.release()
}

// observe tells who observes the answer, before it is sent.
func (x *stdExchange) observe(resp *exchange.Answer) {
	if app, r := x.request.app, &x.request; app.hasWatch(r) {
		app.observe(r, resp, time.Since(r.watched().since))
	}
}

// answerAlone sends an answer that no action made.
func (x *stdExchange) answerAlone(resp *Response, source AnswerSource) {
	r := &x.request
	r.source = source
	r.app.apply(r, resp)
	resp.a.Claim()
	x.observe(&resp.a)
	x.sendSettled(&resp.a)
}

// sendSettled sends a response that has been settled.
func (x *stdExchange) sendSettled(resp *exchange.Answer) {
	x.send(resp)
	resp.Release()
}

// release gives the exchange back to the pool. After the panic of an abort it is
// left to the collector instead: somebody may still be using it.
func (x *stdExchange) release() {
	x.request.end()
	x.removeForm()
	x.leaveBody()
	x.w, x.req, x.ctx, x.race, x.copied, x.bodied, x.matched, x.duplex = nil, nil, nil, nil, false, false, false, false
	if x.timedBody != nil {
		x.timedBody.Stop()
		x.timedBody = nil
	}
	if !invariants.Enabled { // else each request has its own, which knows when it has ended
		x.request.app.exchanges.Put(x)
	}
}

func (x *stdExchange) Host() string { return x.req.Host }

func (x *stdExchange) Header(name string) (string, bool) {
	if v := x.req.Header[name]; len(v) > 0 {
		return v[0], true
	}
	v := x.req.Header.Values(name)
	if len(v) == 0 {
		if strings.EqualFold(name, "Host") { // net/http moves it
			return x.req.Host, x.req.Host != ""
		}
		return "", false
	}
	return v[0], true
}

func (x *stdExchange) List(name string) string {
	return strings.Join(x.req.Header[name], ", ")
}

func (x *stdExchange) Headers(yield func(name, value string) bool) {
	if x.req.Host != "" && !yield("Host", x.req.Host) {
		return
	}
	for _, name := range exchange.SortedKeys(x.req.Header) {
		for _, v := range x.req.Header[name] {
			if !yield(name, v) {
				return
			}
		}
	}
}

func (x *stdExchange) Remote() netip.AddrPort {
	addr, err := netip.ParseAddrPort(x.req.RemoteAddr)
	if err != nil {
		return netip.AddrPort{} // a unix socket, or a test that set none
	}
	return addr
}

func (x *stdExchange) Context() context.Context {
	if x.ctx != nil {
		return x.ctx
	}
	return x.req.Context()
}

func (x *stdExchange) Endable() (ctx context.Context, end context.CancelFunc) {
	x.ctx, end = context.WithCancel(x.req.Context())
	return x.ctx, end
}

// begin sends a head. net/http chooses the framing.
func (x *stdExchange) Begin(resp *exchange.Answer, length int64) exchange.Sink {
	if x.race != nil && !x.race.begin() {
		return lateSink{}
	}
	x.skipBody()
	h, status := x.w.Header(), resp.Status()
	x.setHeaders(h, resp)
	if length >= 0 && exchange.BodyAllowed(status) {
		h["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	}
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // or net/http guesses one
	}
	x.w.WriteHeader(status)
	return (*stdConnection)(x)
}

func (x *stdExchange) Sink() exchange.Sink { return (*stdConnection)(x) }

// interim sends a response below 200. Its headers are not those of the answer.
func (x *stdExchange) Interim(status int, h http.Header) {
	x.race.whileMine(func() {
		all := x.w.Header()
		outer := maps.Clone(all)
		maps.Copy(all, h)
		x.w.WriteHeader(status)
		clear(all)
		maps.Copy(all, outer)
	})
}

func (x *stdExchange) CloseAfter() {
	x.race.whileMine(func() { x.w.Header().Set("Connection", "close") })
}

func (x *stdExchange) OmitDate() {
	x.race.whileMine(func() { x.w.Header()["Date"] = nil })
}

func (x *stdExchange) Abandoned() {
	x.count.end(0)
	if dropped := exchange.Bare(0, exchange.Abort); x.race == nil && x.request.rest == nil {
		x.observe(&dropped)
	}
	x.leaveBody()
}

// stdConnection is a stdExchange as the way to its connection.
type stdConnection stdExchange

func (x *stdConnection) Write(p []byte) (int, error) { return x.w.Write(p) }
func (x *stdConnection) control() *http.ResponseController {
	return http.NewResponseController(x.w)
}
func (x *stdConnection) Flush() error {
	err := x.control().Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return errCannotFlush
	}
	return err
}
func (x *stdConnection) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if x.race != nil && !x.race.begin() {
		return nil, nil, errTimedOut
	}
	conn, rw, err := x.control().Hijack()
	return stdhttp.Hijacked(conn), rw, err
}
func (x *stdConnection) SetReadDeadline(t time.Time) error {
	return x.set(func(c *http.ResponseController) error { return c.SetReadDeadline(t) })
}
func (x *stdConnection) SetWriteDeadline(t time.Time) error {
	return x.set(func(c *http.ResponseController) error { return c.SetWriteDeadline(t) })
}
func (x *stdConnection) EnableFullDuplex() error {
	x.duplex = true
	return x.set((*http.ResponseController).EnableFullDuplex)
}

// set changes a setting of the connection while it is the action's.
func (x *stdConnection) set(change func(*http.ResponseController) error) (err error) {
	if !x.race.whileMine(func() { err = change(x.control()) }) {
		return errTimedOut
	}
	return err
}

// errCannotFlush is what standard middleware brings about.
var errCannotFlush = fmt.Errorf("flush: the ResponseWriter of a middleware has neither Flush nor Unwrap: %w", http.ErrNotSupported)

// ReadFrom leaves the copying to net/http, which knows files.
func (x *stdConnection) ReadFrom(src io.Reader) (int64, error) { return io.Copy(x.w, src) }

func (x *stdConnection) Finish(trailers http.Header) { maps.Copy(x.w.Header(), trailers) }

// send writes the response. A failure to write means that the client is gone.
func (x *stdExchange) send(resp *exchange.Answer) {
	switch resp.Kind() {
	case exchange.Sent:
		return
	case exchange.Abort:
		x.request.releaseBody() // release will not
		x.leaveBody()
		panic(http.ErrAbortHandler)
	}
	x.skipBody()
	status := resp.Status()
	h := x.w.Header()
	x.setHeaders(h, resp)
	if exchange.BodyAllowed(status) {
		if n := resp.Announced(); n != exchange.NoLength {
			h["Content-Length"] = lengthValues(n, &x.request.s.Strings)
		}
		if base := resp.Base(); resp.Body != "" && (base == nil || !base.Typed) && !resp.Has("Content-Type") {
			h["Content-Type"] = nil // or net/http guesses one
		}
	}
	x.w.WriteHeader(status)
	if resp.Body != "" && exchange.BodyAllowed(status) && x.req.Method != http.MethodHead {
		_, _ = x.w.Write(view.Bytes(resp.Body))
	}
}

// setHeaders puts the response's headers into net/http's map, sharing the
// value slices of blocks.
func (x *stdExchange) setHeaders(h http.Header, resp *exchange.Answer) {
	resp.Base().SetIn(h)
	own := resp.Fields()
	for i := range own {
		f := &own[i]
		switch {
		case f.Block != nil:
			f.Block.SetIn(h)
		case f.Replace:
			h[f.Name] = x.request.s.Strings.Values(f.Value)
		default:
			// A block's slice is full, so that append copies it.
			h[f.Name] = append(h[f.Name], f.Value)
		}
	}
}

// lengths holds the Content-Length values of small bodies, shared by all.
var lengths = func() (table [1024][]string) {
	for n := range table {
		table[n] = []string{strconv.Itoa(n)}
	}
	return table
}()

// lengthValues returns n as a header map wants it.
func lengthValues(n int64, c *exchange.Strings) []string {
	if n < int64(len(lengths)) {
		return lengths[n]
	}
	var digits [20]byte
	return c.Values(c.Copy(strconv.AppendInt(digits[:0], n, 10)))
}
