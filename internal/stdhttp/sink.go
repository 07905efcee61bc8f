package stdhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A sink is a wire in the role of an exchange.Sink.
type sink wire

func (x *sink) Write(p []byte) (int, error) { return x.w.Write(p) }
func (x *sink) control() *http.ResponseController {
	return http.NewResponseController(x.w)
}
func (x *sink) Flush() error {
	err := x.control().Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return errCannotFlush
	}
	return err
}
func (x *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !x.race.Begin() {
		return nil, nil, exchange.ErrLate
	}
	c, _ := x.Req.Context().Value(connKey{}).(*timedConn)
	if !x.direct || c == nil || c.handlers == nil { // not net/http's own writer, or not a Server
		conn, rw, err := x.control().Hijack()
		return hijacked(conn), rw, err
	}
	c.handlers.Add(1) // while net/http still waits for the handler
	conn, rw, err := x.control().Hijack()
	if err != nil {
		c.handlers.Done()
		return nil, nil, err
	}
	context.AfterFunc((*wire)(x).lasting(), c.handlers.Done) // net/http cancels the context when the handler has returned or panicked
	return hijacked(conn), rw, nil
}
func (x *sink) SetReadDeadline(t time.Time) error {
	return x.set(func(c *http.ResponseController) error { return c.SetReadDeadline(t) })
}
func (x *sink) SetWriteDeadline(t time.Time) error {
	return x.set(func(c *http.ResponseController) error { return c.SetWriteDeadline(t) })
}
func (x *sink) EnableFullDuplex() error {
	x.duplex = true
	return x.set((*http.ResponseController).EnableFullDuplex)
}

// set changes a setting of the connection, unless the connection no longer belongs to the action.
func (x *sink) set(change func(*http.ResponseController) error) (err error) {
	if !x.race.WhileMine(func() { err = change(x.control()) }) {
		return exchange.ErrLate
	}
	return err
}

// errCannotFlush is returned if standard middleware has replaced the ResponseWriter.
var errCannotFlush = fmt.Errorf("flush: the ResponseWriter of a middleware has neither Flush nor Unwrap: %w", http.ErrNotSupported)

// ReadFrom copies src with net/http's writer, which can send files efficiently.
func (x *sink) ReadFrom(src io.Reader) (int64, error) { return io.Copy(x.w, src) }

func (x *sink) Finish(trailers http.Header) { maps.Copy(x.w.Header(), trailers) }
