//go:build linux

package looph2

import (
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A flow is the state of a stream whose body is streamed, whose response is written in pieces, or whose goroutine leaves heads.
// Most streams have none, above all thousands of streams with blocked actions: they share still, which is never written to.
// session.mu guards the fields and which flow a stream has. That changes once; a goroutine that knows that it has changed may
// read it at any time.
type flow struct {
	heads     []head          // heads to send: interim ones, and the final one
	headsCost int             // approximate memory of the interim ones, in bytes
	out       unread          // pieces of the body, in order
	lent      []byte          // after them, the unsent part of the slice of a blocked Write
	lentBody  engine.HeldBody // the charge for the complete slice
	trailers  [][2]string     // of the answer
	moved     sync.Cond

	in      incoming
	reading deadline
	writing deadline
	lapsed  bool // the deadline has passed, and nothing more is written

	cut error // the client is too slow with its body

	gone chan struct{} // of a stream that waits for memory: closed when it is canceled
}

// incoming is a request body that the action reads while it arrives.
type incoming struct {
	unread       unread // received and unread data
	into         []byte // target of a blocked Read; got bytes of it are filled
	got          int
	begun        int // bytes received, saturating
	credited     int // first bytes of the body, for which the window has been reopened
	transferred  int // bytes of its memory that are charged for their destination
	consumed     int // bytes read, for which the loop is to reopen the window
	ended        bool
	asked        bool // 100 Continue was sent, or is not needed
	waits        bool // a Read is blocked
	stopped      bool // no more data is read
	unclaimed    bool // its action waits for memory: the data does not count against the connection's window
	since        int64
	waited       int64 // time in ns for which Reads were blocked since the last judgement
	trailers     http.Header
	trailersCost int // approximate memory of the trailers, in bytes
}

// still is the shared flow of streams without one.
var still flow

// flows gives the stream its own flow, for writing. s.mu is held.
func (own *stream) flows() *flow {
	if own.flow == &still {
		own.flow = &flow{moved: sync.Cond{L: &own.s.mu}}
	}
	return own.flow
}

// hasMoved wakes goroutines that wait for the stream. s.mu is held.
func (own *stream) hasMoved() {
	if own.flow != &still {
		own.moved.Broadcast()
	}
}

// takeLeft takes the heads that were left, and the number of body bytes read. s.mu is held.
func (own *stream) takeLeft() (heads []head, consumed int) {
	if own.flow == &still {
		return nil, 0
	}
	heads, consumed = own.heads, own.in.consumed
	own.in.consumed = 0
	own.dropHeads()
	return heads, consumed
}

// dropHeads drops the heads that were left, and wakes goroutines that wait for them to be sent. s.mu is held.
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

// dropUnread drops the unread data of the body. s.mu is held.
func (own *stream) dropUnread() {
	if own.flow != &still {
		own.in.unread.drop()
		own.in.credited = 0
	}
}

// stop ends all reading and sending. s.mu is held.
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
