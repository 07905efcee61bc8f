package dunlin

import (
	"errors"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/internal/stdwriter"
)

// FromStd returns an action that calls a standard handler, on either engine. The output of the handler is gathered and
// becomes the action's Response, so that middleware sees the real status, headers and body.
//
// A handler that writes more than 32 KB, or flushes, is suspended: the action returns a streamed response, and the handler
// continues when the response is sent. Middleware does not see interim responses (1xx) and connections that the handler
// hijacks. If middleware wraps the action, the handler runs on a separate goroutine.
//
// The handler reads the body as it arrives, or the bytes that Request.Bytes has read. Group.WithMaxBody and Route.MaxBody
// limit the body; Config.Limits.MaxBody does not. The handler's http.Request has the pattern of the route, without a method or
// host, in Pattern, and its PathValue returns the parameters.
func FromStd(h http.Handler) Action {
	if h == nil {
		panic("dunlin: FromStd: nil handler (called at " + callerPlace() + ")")
	}
	return stdAction(h)
}

// stdAction implements FromStd.
func stdAction(h http.Handler) Action {
	return func(r *Request) Response {
		if r.options {
			return answerOptions(r)
		}
		if most := r.maxStdBody(); most > 0 {
			if err := r.announced(most); err != nil {
				return r.finished(Error(err))
			}
		}
		return r.finished(newStdWriter(r).serve(h, r.stdRequest(), nil))
	}
}

// setMatch stores the match in a standard request that only the handler uses, as http.ServeMux does.
func (r *Request) setMatch(req *http.Request) {
	if r.s.Sent != "" {
		rewrite.SetPath(req, r.s.Path)
	}
	if r.route != nil {
		req.Pattern = r.route.shared.Pattern
	}
	for name, value := range r.Params() {
		req.SetPathValue(name, value)
	}
}

// A stdWriter receives the answer of a standard handler.
type stdWriter struct {
	stdwriter.Writer
	r          *Request
	suspension *suspension // non-nil if the handler has a goroutine of its own
}

func newStdWriter(r *Request) *stdWriter {
	w := &stdWriter{r: r}
	w.Init(r.wire, &r.s, w)
	return w
}

// Begin sends the head of an answer that is too long to be gathered, or that the handler flushes. A handler inside
// middleware is suspended first, until the head has passed the middleware.
func (w *stdWriter) Begin(head *exchange.Answer, length int64) (exchange.Sink, error) {
	if w.suspension != nil {
		return w.suspension.pause()
	}
	sink := w.r.beginEncoded(head, length, false, func() {
		resp := Response{*head}
		w.r.app.apply(w.r, &resp, false)
		*head = resp.a
	})
	if head.Own() != nil && head.Claim() {
		releaseMemory(head)
	}
	return sink, nil
}

// Account returns the account that is charged for the handler's memory, or nil if the request has been answered without the handler.
func (w *stdWriter) Account() *memory.Account {
	w.r.opensAccount()
	return w.r.account
}

// Fail returns the answer for invalid headers.
func (w *stdWriter) Fail(err error) exchange.Answer { return Response{}.fail(err).a }

func (w *stdWriter) response() Response { return Response{w.Answer()} }

// run calls the handler and removes the files of a form that it has parsed.
func (w *stdWriter) run(h http.Handler, req *http.Request) {
	defer w.r.cutAfter(w.Begun)
	if req.MultipartForm == nil { // otherwise the earlier parser removes them
		defer exchange.RemoveForm(req)
	}
	defer w.End()
	h.ServeHTTP(w.For(req.ProtoMajor), req)
}

// errDiscarded is the error that a handler gets when it writes to an answer that middleware has replaced.
var errDiscarded = errors.New("dunlin: middleware has answered instead of the handler")
