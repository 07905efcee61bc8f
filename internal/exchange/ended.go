package exchange

import (
	"errors"
	"io"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// ErrEnded is what code gets that writes to an answer whose end it has said already.
var ErrEnded = errors.New("dunlin: the function that makes the answer has returned: its writer is no longer valid")

// A Use is of what one function writes an answer to, perhaps by several goroutines: what they write is written one after the
// other, and nothing after its end, when the connection may be another request's. The zero value is ready.
type Use struct {
	mu    sync.Mutex
	ended bool
}

// Begin begins to write, until Done. It fails with ErrEnded after the end.
func (u *Use) Begin() error {
	u.mu.Lock()
	if u.ended {
		u.mu.Unlock()
		return ErrEnded
	}
	return nil
}

// Done is to be called after what Begin allowed.
func (u *Use) Done() { u.mu.Unlock() }

// End says that nothing is written any more. It waits for what is being written.
func (u *Use) End() {
	u.mu.Lock()
	u.ended = true
	u.mu.Unlock()
}

// While returns the body of a request. In builds with the race detector it panics when it is read after the request has ended:
// in others it may be that of another request by then.
func While(ended *invariants.Flag, body io.Reader) io.Reader {
	if !invariants.Enabled {
		return body
	}
	return &boundBody{body, ended}
}

type boundBody struct {
	io.Reader
	ended *invariants.Flag
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.ended.IsSet() {
		panic("dunlin: the body of a Request is read after its action has returned: it may be another request's by now. Copy what is needed before.")
	}
	return b.Reader.Read(p)
}
