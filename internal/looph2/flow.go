//go:build linux

package looph2

import (
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A flow is what a stream has for a body that is read as it comes, an answer that is made in pieces, or heads
// that its goroutine leaves. Most streams have none, ten thousand whose actions block least of all: theirs is
// still, which is never written to. Guarded by session.mu, as is which flow a stream has; that changes once, and
// who knows that it has may look at it any time.
type flow struct {
	heads     []head          // to be sent: interim ones, and the answer's
	headsCost int             // bytes of memory that the interim ones take, about
	out       unread          // pieces of the body, in order
	lent      []byte          // behind them, the unsent part of the slice of a Write that waits
	lentBody  engine.HeldBody // the charge for all of that slice
	trailers  [][2]string     // of the answer
	moved     sync.Cond

	in      incoming
	reading deadline
	writing deadline
	lapsed  bool // that has passed, and nothing more is written

	cut error // the client sends too little of its body

	gone chan struct{} // of who waits for room: closed when the stream is canceled
}

// incoming is the body of a request that the action reads as it comes.
type incoming struct {
	unread       unread // what has come and was not read
	into         []byte // where a Read that waits wants more; got is how much came there
	got          int
	begun        int // how much has come, up to what is not a little any more
	credited     int // the first bytes of it, for which the window is open again
	transferred  int // of its memory, the bytes that are charged for what it goes into
	consumed     int // bytes read that the loop is to open it for
	ended        bool
	asked        bool // 100 Continue was sent, or need not be
	waits        bool // a Read waits for more
	stopped      bool // nothing is to be read any more
	unclaimed    bool // its action waits for room: what is here does not close the connection's window
	since        int64
	waited       int64 // ns that Reads have waited since the last judgement
	trailers     http.Header
	trailersCost int // bytes of memory they take, about
}

// still is the flow of a stream that has none.
var still flow

// flows has the stream have a flow of its own, for who writes to it. s.mu is held.
func (own *stream) flows() *flow {
	if own.flow == &still {
		own.flow = &flow{moved: sync.Cond{L: &own.s.mu}}
	}
	return own.flow
}

// hasMoved has those look again who wait for the stream. s.mu is held.
func (own *stream) hasMoved() {
	if own.flow != &still {
		own.moved.Broadcast()
	}
}

// takeLeft takes the heads that were left, and how much of the body was read. s.mu is held.
func (own *stream) takeLeft() (heads []head, consumed int) {
	if own.flow == &still {
		return nil, 0
	}
	heads, consumed = own.heads, own.in.consumed
	own.in.consumed = 0
	own.dropHeads()
	return heads, consumed
}

// dropHeads forgets the heads that were left, and lets those go on that wait until they are gone. s.mu is held.
func (own *stream) dropHeads() {
	if len(own.heads) == 0 {
		return
	}
	own.heads = nil
	if own.headsCost > 0 {
		own.headsCost = 0
		own.chargeOutput()
		own.hasMoved()
	}
}

// dropUnread forgets what was not read of the body. s.mu is held.
func (own *stream) dropUnread() {
	if own.flow != &still {
		own.in.unread.drop()
		own.in.credited = 0
	}
}

// stop ends what flows: nothing is to be read or sent any more. s.mu is held.
func (own *stream) stop() {
	if own.flow == &still {
		return
	}
	own.out.drop()
	own.endLoan()
	own.heads, own.headsCost = nil, 0
	own.dropUnread()
	own.in.trailers, own.in.trailersCost = nil, 0
	own.reading.stop()
	own.writing.stop()
}
