//go:build linux

package looph2

import (
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A flow is the state of a streamed body, of a streamed answer, and of heads that the stream's goroutine passes to the loop. Most
// streams have none of these: they share the flow still, which is never written to. session.mu guards the fields, and the
// stream's pointer to its flow. The pointer changes only once, from still to a flow of the stream's own. Code that runs after the
// change may read the pointer without the lock.
type flow struct {
	heads     []head          // to be sent: interim ones, and the answer's
	headsCost int             // approximate bytes of memory of the interim heads
	out       unread          // pieces of the body, in order
	lent      []byte          // after out: the unsent part of the slice of a Write that waits
	lentBody  engine.HeldBody // the charge for the entire slice
	trailers  [][2]string     // of the answer
	moved     sync.Cond

	in      incoming
	reading deadline
	writing deadline
	lapsed  bool // the deadline has passed; later writes fail

	cut error // set when the client sends its body too slowly
}

// incoming is the body of a request that the action reads as it arrives.
type incoming struct {
	unread       unread // bytes received and not read
	into         []byte // buffer of a waiting Read; got is the number of bytes copied to it
	got          int
	begun        int // bytes received, counted up to the limit of a small body
	credited     int // bytes, from the first on, for which the window is open again
	transferred  int // bytes of its memory that are charged to the object that receives them
	consumed     int // bytes read for which the loop has to open the window
	ended        bool
	asked        bool // 100 Continue was sent, or need not be
	waits        bool // a Read waits for more
	stopped      bool // no more may be read
	unclaimed    bool // the action waits for room: unread bytes do not close the connection's window
	since        int64
	waited       int64 // ns that Reads have waited since the last check of slow clients
	trailers     http.Header
	trailersCost int // approximate bytes of memory of the trailers
}

// still is the shared flow of streams that have none.
var still flow

// flows gives the stream a flow of its own, and returns it for writing. s.mu is held.
func (own *stream) flows() *flow {
	if own.flow == &still {
		own.flow = &flow{moved: sync.Cond{L: &own.s.mu}}
	}
	return own.flow
}

// hasMoved wakes the goroutines that wait for the stream. s.mu is held.
func (own *stream) hasMoved() {
	if own.flow != &still {
		own.moved.Broadcast()
	}
}

// takeLeft removes and returns the heads for the loop, and the number of bytes read of the body. s.mu is held.
func (own *stream) takeLeft() (heads []head, consumed int) {
	if own.flow == &still {
		return nil, 0
	}
	heads, consumed = own.heads, own.in.consumed
	own.in.consumed = 0
	own.dropHeads()
	return heads, consumed
}

// dropHeads discards the heads for the loop, and wakes the goroutines that wait until they are sent. s.mu is held.
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

// dropUnread discards the unread bytes of the body. s.mu is held.
func (own *stream) dropUnread() {
	if own.flow != &still {
		own.in.unread.drop()
		own.in.credited = 0
	}
}

// stop ends the streamed body and answer, in both directions. s.mu is held.
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
