package exchange

import (
	"errors"
	"io"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// ErrEnded is the error of a write to an answer that has already ended.
var ErrEnded = errors.New("dunlin: the function that makes the answer has returned: its writer is no longer valid")

// A Use guards the writer of a function that writes an answer, perhaps on several goroutines. It serialises the writes, and makes
// writes after the end of the answer fail, because the connection may then belong to another request. The zero value is ready.
type Use struct {
	mu    sync.Mutex
	ended bool
}

// Begin begins a write, which Done ends. It fails with ErrEnded after the end of the answer.
func (u *Use) Begin() error {
	u.mu.Lock()
	if u.ended {
		u.mu.Unlock()
		return ErrEnded
	}
	return nil
}

// Done ends a write that Begin allowed.
func (u *Use) Done() { u.mu.Unlock() }

// End prevents further writes. It waits for a running write.
func (u *Use) End() {
	u.mu.Lock()
	u.ended = true
	u.mu.Unlock()
}

// While returns body. In builds with the race detector, it returns a wrapper of body whose Read panics after the end of the
// request. In other builds such a read may get the body of another request.
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
