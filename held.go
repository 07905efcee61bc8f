package dunlin

import (
	"cmp"
	"context"
	"io"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// Memory that the framework holds for a request, in addition to the buffers of the engine, is charged to an account
// (memory.Budget). On the loop engine this is the account of the connection. On net/http each request has its own
// account, because an HTTP/2 connection has many requests.

// A client that announces a large body and sends nothing must not cost memory. The memory for a body of up to trustedBody
// bytes is allocated at once. For a larger body firstBody bytes are allocated, and then memory for the received bytes.
const (
	trustedBody = 64 << 10
	firstBody   = 16 << 10
)

// maxBody returns the limit on the body of the request, in bytes.
func (r *Request) maxBody() int64 {
	if most := r.maxStdBody(); most > 0 {
		return most
	}
	return int64(r.app.config.Limits.MaxBody)
}

// maxStdBody returns the limit on the body that a standard handler may read, in bytes, or 0 for none.
func (r *Request) maxStdBody() int64 {
	if r.route == nil {
		return 0
	}
	return r.route.shared.MaxBody
}

// holdBody charges a total of capacity bytes for the request's body. It may wait for room if the account is large. It
// returns a 413 problem for a body that can never fit, and a 503 problem if the budget has no room.
func (r *Request) holdBody(capacity int, announced int64) error {
	if most := r.app.memory.Budget.MostBody(); most > 0 && max(int64(capacity), announced) > most {
		r.wire.RefuseBody()
		return r.app.server.BodyTooLargeEver()
	}
	if !r.opensAccount() {
		return exchange.ErrLate
	}
	want := int64(capacity)
	if announced > trustedBody && capacity > firstBody {
		want = max(want, announced+1)
	} else if announced < 0 && capacity > trustedBody {
		want = max(want, min(r.maxBody()+1, r.app.memory.Budget.MostAhead()))
	}
	more := max(want-r.bodyHeld, 0)
	outcome := r.account.Reserve(memory.Body, more)
	if outcome == memory.MustWait {
		r.wire.MayWait()
		lost := func() bool { return exchange.Lost(r.wire, r.Context(), announced, len(r.s.Payload)) }
		outcome = r.account.Acquire(memory.Body, more, r.Context().Done(), lost)
		r.wire.Waited()
	}
	if outcome == memory.Granted {
		r.bodyHeld += more
		return nil
	}
	r.wire.RefuseBody()
	if outcome == memory.MustWait {
		return r.app.server.BodyCut(cmp.Or(r.Context().Err(), context.Canceled))
	}
	return r.app.server.NoRoomForBody(r.Route(), r.account.Met())
}

// awaitMemory reserves memory for a response that is expected to be large, and may wait for it. It reports whether the
// action may begin. Otherwise resp is the refusal.
func (r *Request) awaitMemory(resp *Response) bool {
	err := exchange.ErrLate
	if r.opensAccount() {
		if err = r.app.server.AwaitMemory(r.wire, &r.s, r.account, r.Context); err == nil {
			return true
		}
	}
	r.source, *resp = exchange.FromMemory, Error(err)
	return false
}

// ReserveMemory charges n more bytes to the memory budget until the request ends, in addition to its body. [Decode],
// [Request.Form] and typed actions call it for values that need much more memory than their text. It does not wait. The error
// is a 503 problem if there is no room, and a 413 problem if one request can never have so much memory. Later calls return
// the same error. If the body could not be read, ReserveMemory returns the error of reading it.
func (r *Request) ReserveMemory(n int64) error {
	r.alive()
	switch {
	case r.bodyErr != nil || n <= 0 && r.account == nil:
	case !r.opensAccount():
		r.bodyErr = exchange.ErrLate
	case !r.account.ReserveBeside(n, r.s.Loaded || r.wire.ContentLength() == 0):
		r.bodyErr = r.app.server.NoRoomForValues(r.Route(), r.account.Met())
	}
	return r.bodyErr
}

// opensAccount ensures that the request has an account. It reports false if the request has been answered without its action.
func (r *Request) opensAccount() bool {
	if r.account == nil {
		r.account = r.wire.Account()
	}
	return r.account != nil
}

// noteBody records for the account that n more bytes of the body have arrived, and that left bytes remain (-1: unknown).
func (r *Request) noteBody(n int, left int64) {
	if r.account != nil && n > 0 {
		r.account.Progress(int64(n), left)
	}
}

// bodyEnded returns the error that ended the reading of the body: err, or a problem if the account was evicted.
func (r *Request) bodyEnded(err error) error {
	switch {
	case r.account == nil:
	case err == io.EOF && r.account.SetWorking(true): // the request no longer waits for the client
	case r.account.Evicted():
		r.wire.RefuseBody()
		return r.app.noMemory("the request body", r.account.Met())
	}
	return err
}

// releaseBody releases the memory held for the request. It is called by end, and by rescue and Abandon for an abandoned
// request, for which end is not called.
func (r *Request) releaseBody() {
	if r.account == nil {
		return
	}
	r.account.EndRequest()
	r.bodyHeld = 0
	r.wire.ReleaseAccount(r.account)
	r.account = nil
}

// CacheMemory implements ext.CacheBudget.
func (*inside) CacheMemory(a *App, drop func(bytes int64)) interface {
	Reserve(n int64) bool
	Release(n int64)
} {
	return a.memory.Budget.Keep(drop)
}
