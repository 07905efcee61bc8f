package dunlin

import (
	"cmp"
	"context"
	"io"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// What the framework holds for a request, beside what its engine does, is charged to an account
// (admission.Holders): on the loop engine that of its connection, on net/http one of its
// own, since a connection of HTTP/2 carries many.

// A client that announces much and sends nothing must not cost memory: a body of up to
// trustedBody bytes has its memory at once, of a larger one what has come, and firstBody at first.
const (
	trustedBody = 64 << 10
	firstBody   = 16 << 10
)

// maxBody returns the limit on the body of the request, in bytes.
func (r *Request) maxBody() int64 {
	if most := r.maxStdBody(); most > 0 {
		return most
	}
	return r.app.config.MaxBody
}

// maxStdBody returns the limit on what a standard handler may read, 0 for none.
func (r *Request) maxStdBody() int64 {
	if r.route == nil {
		return 0
	}
	return r.route.shared.MaxBody
}

// holdBody has capacity bytes held, in all, for what is read of the request's body. A body
// that could never fit is a 413 problem, one for which no room is made a 503. Who holds
// little never waits here.
func (r *Request) holdBody(capacity int, announced int64) error {
	if most := r.app.memory.Holders.MostBody(); most > 0 && max(int64(capacity), announced) > most {
		r.wire.RefuseBody()
		return r.app.server.BodyTooLargeEver()
	}
	if !r.opensAccount() {
		return exchange.ErrLate
	}
	want := int64(capacity)
	if announced > trustedBody && capacity > firstBody {
		want = max(want, announced+1)
	}
	outcome := r.account.ReserveGrowing(want, announced, r.maxBody())
	if outcome == admission.MustWait {
		r.wire.MayWait()
		lost := func() bool { return exchange.Lost(r.wire, r.Context(), announced, len(r.s.Payload)) }
		outcome = r.account.AcquireBody(want, announced, r.maxBody(), r.Context().Done(), lost)
		r.wire.Waited()
	}
	if outcome == admission.Granted {
		return nil
	}
	r.wire.RefuseBody()
	if outcome == admission.MustWait {
		return r.app.server.BodyCut(cmp.Or(r.Context().Err(), context.Canceled))
	}
	return r.app.server.NoRoomForBody(r.Route(), r.account.Met())
}

// opensAccount is false once the request has been answered without its action.
func (r *Request) opensAccount() bool {
	if r.account == nil {
		r.account = r.wire.Account()
	}
	return r.account != nil
}

// noteBody notes that n more bytes of the body have come, for which its account is judged,
// and how many are left (-1: unknown).
func (r *Request) noteBody(n int, left int64) {
	if r.account != nil && n > 0 {
		r.account.Moved(int64(n), left)
	}
}

// bodyEnded returns err, with which reading the body has ended, or the reason for it: that
// its memory is needed for others.
func (r *Request) bodyEnded(err error) error {
	switch {
	case r.account == nil:
	case err == io.EOF && r.account.Complete(): // from here on nobody waits for the client
	case r.account.Ending():
		r.wire.RefuseBody()
		return r.app.noMemory("the request body", r.account.Met())
	}
	return err
}

// releaseBody gives back what is held for the request. It is called by itself for one that is
// left to the collector.
func (r *Request) releaseBody() {
	if r.account == nil {
		return
	}
	r.account.EndRequest()
	r.wire.ReleaseAccount(r.account)
	r.account = nil
}
