//go:build linux

package request

import (
	"io"
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A stdBody is the body of a standard handler's request. Such handlers read on any goroutine: the transport of a proxy during the
// answer, and the handler of an http.TimeoutHandler even after it. So the body is closed when the handler has answered: afterwards
// its source belongs to another request.
type stdBody struct {
	framing Framing

	mu      sync.Mutex // held by a Read
	setting sync.Mutex // guards the fields below; locked after mu

	req     *http.Request // receives the trailers; nil once it has them
	source  io.Reader
	rewound *exchange.Reader // source, if the body was rewound
	state   stdBodyState
}

type stdBodyState uint8

const (
	bodyOpen   stdBodyState = iota
	bodyClosed              // by the handler
	bodyEnded               // the request has ended, or will soon
)

func (b *stdBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setting.Lock()
	source, state := b.source, b.state
	b.setting.Unlock()
	if state != bodyOpen {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := source.Read(p)
	if err == io.EOF {
		b.addTrailers()
	}
	return n, exchange.StdBodyError(err)
}

// A discarder is a source that discards its rest when the handler closes the body. Others discard it after the answer.
type discarder interface{ Discard() }

// Close makes later Reads fail.
func (b *stdBody) Close() error {
	b.setting.Lock()
	defer b.setting.Unlock()
	if b.state != bodyEnded {
		b.state = bodyClosed
		if d, ok := b.source.(discarder); ok {
			d.Discard()
		}
	}
	return nil
}

func (b *stdBody) setRequest(req *http.Request) {
	b.setting.Lock()
	defer b.setting.Unlock()
	if b.req != nil {
		b.req = req
	}
}

// addTrailers adds the trailers of the body to the request.
func (b *stdBody) addTrailers() {
	b.setting.Lock()
	defer b.setting.Unlock()
	if b.req == nil {
		return
	}
	for name, value := range b.framing.Trailers {
		if b.req.Trailer == nil {
			b.req.Trailer = make(http.Header)
		}
		b.req.Trailer.Add(name, value)
	}
	b.req = nil
}

func (b *stdBody) rewind(whole []byte) {
	b.setting.Lock()
	defer b.setting.Unlock()
	b.state = bodyOpen
	b.rewound = &exchange.Reader{Rest: whole}
	b.source = b.rewound
}

// move is Base.MoveBody.
func (b *stdBody) move(whole *Whole, to []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setting.Lock()
	defer b.setting.Unlock()
	whole.Move(to)
	if r := b.rewound; r != nil {
		r.Rest = to[len(to)-len(r.Rest):]
	}
}

// end ends the use of the body, after a Read under way has failed.
func (b *stdBody) end() {
	b.setting.Lock()
	b.state = bodyEnded
	b.setting.Unlock()
	b.framing.StopBody()
	b.mu.Lock() // waits until a Read under way has returned
	//lint:ignore SA2001 the previous holder has finished
	b.mu.Unlock()
}
