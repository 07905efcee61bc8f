package dunlin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/sse"
)

// An Event is one message of an event stream (HTML standard, section 9.2).
type Event struct {
	ID    string        // the value of LastEventID after the client reconnects; "" changes nothing
	Type  string        // the name of the event at the client; "" is "message"
	Data  string        // the text, of any number of lines
	Retry time.Duration // the client's delay before it reconnects; 0 changes nothing
}

var blockSSE = NewHeaderBlock("Content-Type", "text/event-stream", "Cache-Control", "no-store")

// SSE answers 200 with an event stream that ends when stream returns. stream runs when the response is sent, after
// the action has returned, and may use the request, except for its body. It should return when [Events.Done] is closed:
//
//	return dunlin.SSE(func(e *dunlin.Events) error {
//		for {
//			select {
//			case m := <-messages:
//				if err := e.Send(dunlin.Event{Data: m}); err != nil {
//					return err
//				}
//			case <-e.Done():
//				return nil
//			}
//		}
//	})
//
// The head and each event are sent at once. An error or a panic cuts the connection. In a drain, streams end one after another within
// half of the time of [App.Shutdown]. A client is told to reconnect after a random delay: up to the latest Event.Retry, or 5 seconds.
func SSE(stream func(e *Events) error) Response {
	if stream == nil {
		return Response{}.fail(errors.New("SSE was given a nil function"))
	}
	resp := plain(http.StatusOK, blockSSE, "").producing(func(r *Request, planned *exchange.Answer) Response {
		e := &Events{r: r, w: &streamWriter{r: r, planned: planned}}
		return e.w.run(func(io.Writer) error { return e.run(stream) })
	})
	resp.a.Own().Lasts = true
	return resp
}

// Events is an event stream that is being sent. Its methods are safe for concurrent use until the function given to SSE
// returns.
type Events struct {
	r      *Request
	w      *streamWriter
	ctx    context.Context // of the request
	end    context.CancelFunc
	told   atomic.Bool // the drain of the server has ended the context
	drain  sse.Listener
	sender sse.Sender // writes to w
}

// heartbeat is the default interval of heartbeats, shorter than the idle timeout of common proxies.
const heartbeat = 15 * time.Second

// run calls stream, which sends its events.
func (e *Events) run(stream func(*Events) error) error {
	e.ctx, e.end = e.r.wire.Endable()
	e.sender.To, e.sender.Lost = e.w, e.end
	defer e.sender.Close() // later use of e fails
	defer e.end()
	e.drain.Stream = (*draining)(e)
	e.r.app.drains.Add(&e.drain, e.r.app.Draining(), e.r.app.servers.Spread)
	defer e.r.app.drains.Remove(&e.drain)
	if err := e.w.Flush(); err != nil {
		return err
	}
	e.Heartbeat(heartbeat)
	err := stream(e)
	switch {
	case e.told.Load() && (err == nil || errors.Is(err, context.Canceled)): // stream has ended because the server is about to stop
		_ = e.sender.SendRetry() // an error means that the client has disconnected
		return nil
	case err == nil || e.ctx.Err() == nil:
	case !e.told.Load():
		e.sender.While(func() { _, err = e.w.recordError(0, err) }) // the client has disconnected: err is no failure of the server
	}
	return err
}

// Send sends one event. It fails if the ID or the Type contains a line break, and if the client has disconnected.
func (e *Events) Send(ev Event) error {
	return e.sender.Send(&sse.Event{ID: ev.ID, Type: ev.Type, Data: ev.Data, Retry: ev.Retry})
}

// Comment sends lines that clients ignore.
func (e *Events) Comment(text string) error { return e.sender.Comment(text) }

// Heartbeat sets the interval of silence after which an empty comment is sent. The comments keep proxies from closing
// the stream and detect that the client has disconnected. 0 disables them. Default: 15 s.
func (e *Events) Heartbeat(every time.Duration) { e.sender.Heartbeat(every) }

// Done returns a channel that is closed when the stream should end: when the client has disconnected, or when the server
// drains.
func (e *Events) Done() <-chan struct{} { return e.ctx.Done() }

// Context returns the context of the request. While events are sent it is cancelled when [Events.Done] is closed.
func (e *Events) Context() context.Context { return e.ctx }

// LastEventID returns the ID of the last event that the client received from an earlier stream, or "" for a first
// connection.
func (e *Events) LastEventID() string { return e.r.Header("Last-Event-ID") }

// draining is Events as a listener for the drain of the server. The drain calls Draining, which ends the context.
type draining Events

func (e *draining) Draining() {
	e.told.Store(true)
	e.end()
}

// Upgrade answers 101 and switches the connection to another protocol, or answers with an event stream. It is for packages of
// this module: the type of p is internal. If the connection cannot switch, for example over HTTP/2, the answer is a 500, or a
// goroutine sends the event stream.
func (*inside) Upgrade(p exchange.Protocol) Response {
	if s, ok := p.(exchange.EventStream); ok {
		return eventStream(s)
	}
	return bare(http.StatusSwitchingProtocols, exchange.Complete).producing(func(r *Request, planned *exchange.Answer) Response {
		if err := exchange.Upgrade(r.wire, planned, p, func() { r.app.applyLate(r, planned) }); err != nil {
			return failLate(planned, err)
		}
		return bare(http.StatusSwitchingProtocols, exchange.Sent)
	})
}

// eventStream answers with an event stream. The engine sends it if it can; otherwise a goroutine does.
func eventStream(s exchange.EventStream) Response {
	resp := plain(http.StatusOK, blockSSE, "").producing(func(r *Request, planned *exchange.Answer) Response {
		to, ok := r.wire.(exchange.Streamer)
		if ok && (r.uncommon == nil || r.uncommon.encoding == nil) && to.OpenStream(planned, s, func() { r.app.applyLate(r, planned) }) != exchange.ErrCannotUpgrade {
			return bare(http.StatusOK, exchange.Sent)
		}
		w := &streamWriter{r: r, planned: planned}
		return w.run(func(io.Writer) error {
			ctx, end := r.wire.Endable()
			defer end()
			_ = w.Flush() // the next write fails, too
			err := r.app.drains.During(r.app.Draining(), r.app.servers.Spread, func(ends <-chan struct{}) error { return s.Serve(ctx, ends, w) })
			if ctx.Err() != nil {
				_, err = w.recordError(0, err) // the client has disconnected
			}
			return err
		})
	})
	resp.a.Own().Lasts = true
	return resp
}
