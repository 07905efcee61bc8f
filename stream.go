package dunlin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// Stream answers 200 with a body that write produces piece by piece, after the
// action has returned: the one kind of response that is not complete before
// its first byte leaves. What write writes is gathered and sent in pieces; if
// the writer it is given has a method Flush() error, calling that sends what
// there is (see [Flush]). When write returns an error or panics, the
// connection is cut, so that the client does not take what it has for the
// whole. The request may be used until write returns.
func Stream(contentType string, write func(w io.Writer) error) Response {
	r := Bytes(contentType, nil)
	if write == nil {
		return r.fail(errNoStream)
	}
	if r.failed {
		return r
	}
	if r.x == nil {
		r = r.push(field{block: blockNone}) // to have an extra
	}
	r.x.stream, r.kind = write, kindStream
	return r
}

var errNoStream = errors.New("Stream was given a nil function")

// blockNone is a block without headers.
var blockNone = new(HeaderBlock)

// Flush sends what has been written to the writer of a Stream so far.
func Flush(w io.Writer) error {
	if f, ok := w.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return http.ErrNotSupported
}

// runStream calls the function of a stream. Whatever goes wrong in it is
// logged here; the caller cuts the connection.
func (a *App) runStream(write func(io.Writer) error, w io.Writer, r *Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			a.config.Logger.Error("panic in a stream", "panic", fmt.Sprint(v),
				"route", r.Route(), "id", r.ID(), "stack", string(debug.Stack()))
		}
	}()
	if err = write(w); err != nil {
		a.config.Logger.Error("stream failed", "error", err.Error(), "route", r.Route(), "id", r.ID())
	}
	return err
}
