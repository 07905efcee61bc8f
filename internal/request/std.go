//go:build linux

package request

import (
	"context"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A std is net/http's view of a request. It is made on demand.
type std struct {
	req  *http.Request
	body *stdBody // of req, until CloseBody
}

// HasStd reports whether the request has a view of net/http.
func (b *Base) HasStd() bool { return b.req != nil }

// StdReads reports whether a standard handler may be reading the body.
func (b *Base) StdReads() bool { return b.body != nil }

// StdRequest returns the *http.Request of the current request, and makes it at the first call.
func (b *Base) StdRequest() *http.Request {
	ctx := b.Call.Context(b.framing.Context())
	if b.req == nil {
		b.makeStd(ctx)
	} else if ctx != b.req.Context() {
		b.req = b.req.WithContext(ctx)
		if b.body != nil {
			b.body.setRequest(b.req)
		}
	}
	b.rewindStd()
	return b.req
}

func (b *Base) makeStd(ctx context.Context) {
	req := exchange.NewStdRequest(b.framing, b.State.Method, StdFields(usualFields, b.framing.Headers))
	authority, source := b.framing.OpenStd(req)
	req.URL = TargetURL(authority, req.RequestURI)
	req = req.WithContext(ctx)
	if source != nil {
		b.body = &stdBody{framing: b.framing, req: req, source: source}
		req.Body = b.body
		if most := b.State.Route.MaxBody; most > 0 {
			req.Body = http.MaxBytesReader(nil, b.body, most)
		}
	}
	b.Call.SetMatch(req)
	b.req = req
}

// rewind lets a standard handler read the bytes again that Request.Bytes has read.
func (b *Base) rewindStd() {
	if b.body == nil || !b.State.Loaded {
		return
	}
	b.body.rewind(b.State.Whole)
	b.req.Body = b.body // Bytes has enforced MaxBody
}

// CloseBody ends the use of the body by a standard handler. A Read under way fails.
func (b *Base) CloseBody() {
	if b.body != nil {
		b.body.end()
		b.body = nil
	}
}

// MoveBody replaces a body that has arrived completely by its copy in other memory, also for a standard handler that reads it.
func (b *Base) MoveBody(whole *Whole, to []byte) {
	if b.body == nil {
		whole.Move(to)
		return
	}
	b.body.move(whole, to)
}

// usualFields is the number of fields for which the map of net/http has room at first.
const usualFields = 12
