package dunlin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An Event is one message of an event stream (HTML standard, section 9.2).
type Event struct {
	ID    string        // what LastEventID says when the client comes back; "" changes nothing
	Type  string        // the name a client listens to; "" is "message"
	Data  string        // the text, of any number of lines
	Retry time.Duration // how long the client waits before it comes back; 0 changes nothing
}

var blockSSE = NewHeaderBlock("Content-Type", "text/event-stream", "Cache-Control", "no-store")

// SSE answers 200 with an event stream that lasts until stream returns. Stream
// runs when the response is sent, after the action has returned, and may use
// the request, except for its body. It should return when [Events.Done] says so:
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
// The head is sent at once, and each event as it comes. An error or a panic cuts
// the connection.
func SSE(stream func(e *Events) error) Response {
	if stream == nil {
		return Response{}.fail(errNoEvents)
	}
	resp := plain(http.StatusOK, blockSSE, "").producing(func(r *Request, resp *Response) Response {
		e := &Events{r: r, w: &streamWriter{r: r, resp: resp}}
		return e.w.run(func(io.Writer) error { return e.run(stream) })
	})
	resp.a.Own().Lasts = true
	return resp
}

var (
	errNoEvents   = errors.New("SSE was given a nil function")
	errEventsOver = errors.New("the event stream has ended")
)

// Events is an event stream being sent. Its methods are safe for any number of
// goroutines, until the function given to SSE returns.
type Events struct {
	r     *Request
	ctx   context.Context // the request's
	end   context.CancelFunc
	told  atomic.Bool // that the server is about to stop
	drain drainEntry

	mu       sync.Mutex
	w        *streamWriter
	buf      []byte
	interval time.Duration // between signs of life
	timer    *time.Timer   // when the next may be due; nil before the first
	sent     time.Time     // when something was last sent
	over     bool
}

const (
	// heartbeat is how long an event stream is silent by default, shorter than
	// the idle timeout of common proxies.
	heartbeat = 15 * time.Second
	// keptEvent is the largest event buffer, in bytes, that an open stream keeps.
	keptEvent = 4 << 10
)

// run has stream send its events.
func (e *Events) run(stream func(*Events) error) error {
	e.ctx, e.end = e.r.wire.Endable()
	defer e.close()
	drains := &e.r.app.drains
	drains.add(e.r.app, e)
	defer drains.remove(e)
	if err := e.w.Flush(); err != nil {
		return err
	}
	e.Heartbeat(heartbeat)
	err := stream(e)
	switch {
	case err == nil || e.ctx.Err() == nil:
		return err
	case !e.told.Load():
		e.mu.Lock()
		defer e.mu.Unlock()
		_, err = e.w.note(0, err) // the client has gone, whatever came of it
		return err
	case errors.Is(err, context.Canceled):
		return nil // the server is about to stop, and stream has obeyed
	}
	return err
}

// close ends the stream for whoever still holds e.
func (e *Events) close() {
	e.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.timer != nil {
		e.timer.Stop()
	}
}

// Send sends one event. It fails for an ID or a Type that holds a line break,
// and when the client has gone.
func (e *Events) Send(ev Event) error {
	if strings.ContainsAny(ev.ID, "\r\n\x00") {
		return fmt.Errorf("event ID %q: it may hold no line break and no NUL", ev.ID)
	}
	if strings.ContainsAny(ev.Type, "\r\n") {
		return fmt.Errorf("event type %q: it may hold no line break", ev.Type)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.buf = appendEvent(e.buf[:0], ev)
	return e.write()
}

// Comment sends lines that clients ignore.
func (e *Events) Comment(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.buf = append(appendLines(e.buf[:0], ":", text), '\n')
	return e.write()
}

// Heartbeat sets how long the stream may be silent before an empty comment is
// sent, which keeps proxies from closing it and finds out whether the client is
// still there; 0 is for ever. Default: 15 s.
func (e *Events) Heartbeat(every time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.interval = every
	switch {
	case e.over:
	case e.timer == nil && every > 0:
		e.timer = time.AfterFunc(every, e.beat)
	case every > 0:
		e.timer.Reset(every)
	case e.timer != nil:
		e.timer.Stop()
	}
}

// beat is called when a sign of life may be due. No goroutine waits for that.
func (e *Events) beat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.interval <= 0 {
		return
	}
	wait := e.interval - time.Since(e.sent)
	if wait <= 0 {
		e.buf = append(e.buf[:0], ":\n\n"...)
		if e.write() != nil {
			return
		}
		wait = e.interval
	}
	e.timer.Reset(wait)
}

// write sends what is in buf. e.mu is held.
func (e *Events) write() error {
	if e.over {
		return errEventsOver
	}
	_, err := e.w.Write(e.buf)
	if err == nil {
		err = e.w.Flush()
	}
	if err != nil {
		e.end()
	}
	if cap(e.buf) > keptEvent {
		e.buf = nil
	}
	e.sent = time.Now()
	return err
}

// Done returns a channel that is closed when the stream should end: the client
// has gone, or the server is about to stop.
func (e *Events) Done() <-chan struct{} { return e.ctx.Done() }

// Context returns a context that ends with [Events.Done]. It is that of the request,
// for as long as events are sent.
func (e *Events) Context() context.Context { return e.ctx }

// LastEventID returns the ID of the last event that the client has seen of an
// earlier stream, "" when it comes for the first time.
func (e *Events) LastEventID() string { return e.r.Header("Last-Event-ID") }

// appendEvent appends ev and the empty line that ends it. An event without data
// is still one when it has a type.
func appendEvent(b []byte, ev Event) []byte {
	if ev.Type != "" {
		b = appendLines(b, "event: ", ev.Type)
	}
	if ev.ID != "" {
		b = appendLines(b, "id: ", ev.ID)
	}
	if ev.Retry > 0 {
		b = append(b, "retry: "...)
		b = append(strconv.AppendInt(b, ev.Retry.Milliseconds(), 10), '\n')
	}
	if ev.Data != "" || ev.Type != "" {
		b = appendLines(b, "data: ", ev.Data)
	}
	return append(b, '\n')
}

// appendLines appends each line of text behind prefix. LF, CR and CRLF break
// lines, as they do for the reader.
func appendLines(b []byte, prefix, text string) []byte {
	for {
		i := strings.IndexAny(text, "\r\n")
		b = append(b, prefix...)
		if i < 0 {
			b = append(b, text...)
			return append(b, '\n')
		}
		b = append(append(b, text[:i]...), '\n')
		if strings.HasPrefix(text[i:], "\r\n") {
			i++
		}
		text = text[i+1:]
	}
}

// drainWatch tells open event streams that the app is about to end. It is a list,
// since a context that each waits on would cost more than the rest of its state.
type drainWatch struct {
	mu      sync.Mutex
	first   *Events
	told    bool // the end has begun
	watched bool // a goroutine waits for it
}

// drainEntry is a stream's place in the list.
type drainEntry struct{ prev, next *Events }

// add has e told of the end of a, at once if that has begun.
func (d *drainWatch) add(a *App, e *Events) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		e.tell()
		return
	}
	if !d.watched {
		d.watched = true
		go func() {
			<-a.Draining()
			d.tell()
		}()
	}
	e.drain.next = d.first
	if d.first != nil {
		d.first.drain.prev = e
	}
	d.first = e
}

func (d *drainWatch) remove(e *Events) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.drain.prev != nil:
		e.drain.prev.drain.next = e.drain.next
	case d.first == e:
		d.first = e.drain.next
	}
	if e.drain.next != nil {
		e.drain.next.drain.prev = e.drain.prev
	}
	e.drain = drainEntry{}
}

func (d *drainWatch) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = true
	for e := d.first; e != nil; e = e.drain.next {
		e.tell()
	}
}

// tell ends e's context because the server is about to stop.
func (e *Events) tell() {
	e.told.Store(true)
	e.end()
}
