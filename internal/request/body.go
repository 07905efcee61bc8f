package request

import (
	"io"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A Whole is a request body that has arrived completely. The zero value is an empty body.
type Whole struct {
	Bytes  []byte           // the entire body, borrowed
	reader *exchange.Reader // allocated on demand
}

// Reader returns the reader of the body. All callers share it, as they share the reader of a streamed body: a later one
// continues where the previous one stopped.
func (b *Whole) Reader() *exchange.Reader {
	if b.reader == nil {
		b.reader = &exchange.Reader{Rest: b.Bytes}
	}
	return b.reader
}

// AtMost returns the reader of the body. It fails if the body has more than limit bytes.
func (b *Whole) AtMost(limit int64, server *exchange.Server) io.Reader {
	if int64(len(b.Bytes)) > limit {
		return exchange.FailedReader{Err: server.BodyTooLarge(limit)}
	}
	return b.Reader()
}

// Unread returns the part of the body that was not read.
func (b *Whole) Unread() []byte {
	if b.reader != nil {
		return b.reader.Rest
	}
	return b.Bytes
}

// Move replaces the body by its copy in other memory.
func (b *Whole) Move(to []byte) {
	b.Bytes = to
	if b.reader != nil {
		b.reader.Rest = to[len(to)-len(b.reader.Rest):]
	}
}
