package topic

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/sse"
)

// inside gives this package the internal methods of package dunlin.
var inside = dunlin.Internal(exchange.Module{})

const (
	// heartbeat is the time without events after which a stream sends a comment. It is shorter than the idle timeout of common
	// proxies.
	heartbeat = 15 * time.Second
	// pollTime is the duration of a long poll without messages.
	pollTime = 25 * time.Second
)

// Events returns an event stream of topics of one hub. The ID of an event is the ID of its message, its type is the topic, and its
// data is the message. A browser that reconnects sends the last ID in Last-Event-ID and gets the missed events. For the first
// connection of a page, the query parameter last replaces that field. If the missed events are no longer in the logs, the first
// event has the type "resync", and the page must reload its state. Events does not check whether the client may read the topics:
// check this before the call.
//
// On the loop engine a stream over HTTP/1.1 has no goroutine, and its request ends when the stream opens. Over HTTP/2, on net/http,
// and inside middleware that encodes streams, a stream has a goroutine.
func Events(r *dunlin.Request, topics ...Topic) dunlin.Response {
	return EventsUntil(r, time.Time{}, topics...)
}

// EventsUntil is Events whose stream ends at a time, such as the expiry of the client's session. The browser then repeats its
// request, and the app can answer 401: EventSource reports an error and does not retry. With the zero time the stream does not
// expire.
func EventsUntil(r *dunlin.Request, end time.Time, topics ...Topic) dunlin.Response {
	return events(r, topics, &stream{expires: end})
}

// Poll is Events for clients that cannot read a stream. The response ends after the first messages, or without messages after 25
// seconds. The first request is answered at once, with the ID of the present position. Each later request sends the last ID.
func Poll(r *dunlin.Request, topics ...Topic) dunlin.Response {
	return events(r, topics, &stream{once: true})
}

func events(r *dunlin.Request, topics []Topic, s *stream) dunlin.Response {
	s.last = r.Header("Last-Event-ID")
	if s.last == "" {
		s.last = r.Query("last")
	}
	for _, t := range topics {
		if t.hub != topics[0].hub {
			return dunlin.Error(errHub)
		}
		s.names = append(s.names, t.name)
	}
	if len(topics) == 0 {
		return dunlin.Error(errNone)
	}
	s.hub, s.as = topics[0].hub, asEvent
	if err := s.hub.checkNames(s.names); err != nil {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusNotFound, Detail: err.Error()})
	}
	s.fresh = s.once && s.last == ""
	return inside.Upgrade(s)
}

// A stream is an event stream. It implements exchange.EventStream.
type stream struct {
	feed
	peer    exchange.Peer
	last    string   // last ID of the client; only until the stream opens
	names   []string // of the topics; only until the stream opens
	once    bool     // the stream is a long poll
	fresh   bool     // a long poll without ID: the response is the present position
	silent  bool     // a heartbeat must be sent
	leaving bool     // the server drains; the stream ends at its deadline
	said    bool     // the last event, with the retry time, must be sent
	over    bool
	expires time.Time   // zero for never
	expiry  *time.Timer // nil for none
	expired atomic.Bool
}

// open subscribes the stream.
func (s *stream) open(c client) error {
	s.client = c
	err := s.subscribe(s.last, s.names)
	s.last, s.names = "", nil
	if err == nil && !s.expires.IsZero() {
		s.expiry = time.AfterFunc(time.Until(s.expires), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.expired.Store(true)
			if !s.closed {
				c.Wake()
			}
		})
	}
	return err
}

// close ends the subscriptions of the stream.
func (s *stream) close() {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.Close()
}

// next appends a due heartbeat and the next messages. more reports that further messages are ready.
func (s *stream) next(out []byte) (_ []byte, more bool) {
	if s.silent {
		s.silent = false
		out = append(s.Rest(out), ":\n\n"...)
	}
	before := len(out)
	out, more = s.Append(out)
	if s.once && len(out) > before && (s.fresh || bytes.Contains(out[before:], []byte("\nevent: "))) { // not only a position
		s.over, more = true, false
	}
	return out, more
}

// farewell appends a random retry time, so that the clients do not reconnect all at once.
func (s *stream) farewell(out []byte) []byte {
	s.over = true
	return sse.AppendRetry(s.Rest(out), s.hub.settings[0].Reconnect)
}

// Name implements exchange.Protocol. An event stream has none.
func (s *stream) Name() string { return "" }

// Open implements exchange.Protocol.
func (s *stream) Open(p exchange.Peer) {
	s.peer = p
	s.over = s.open(p) != nil
}

// Data implements exchange.Protocol. It drops input.
func (s *stream) Data(t exchange.Turn, in []byte) int {
	switch {
	case s.Cut(), s.expired.Load():
		s.over = true
	case s.leaving:
	case t.Draining():
		s.leaving = true
		s.peer.SetDeadline(1 + rand.Int64N(t.Spread()+1))
	case s.once && s.last == "":
		s.last = "-" // sets the deadline only once: further calls do not prolong a poll
		s.peer.SetDeadline(int64(pollTime))
	case !s.once:
		s.peer.SetDeadline(int64(heartbeat))
	}
	return len(in)
}

// Output implements exchange.Protocol.
func (s *stream) Output(out []byte) (_ []byte, last bool) {
	switch {
	case s.over:
	case s.said:
		out = s.farewell(out)
	default:
		var more bool
		if out, more = s.next(out); more {
			s.peer.Wake()
		}
	}
	return out, s.over
}

// Unsent implements exchange.Protocol.
func (s *stream) Unsent(n int) int {
	if s.over {
		n = 0 // there is no later output
	}
	return s.feed.Unsent(n)
}

// Pending implements exchange.Protocol.
func (s *stream) Pending(n int64) bool {
	if n > 0 {
		s.Hold()
	}
	return false
}

// Timeout implements exchange.Protocol.
func (s *stream) Timeout(exchange.Turn) {
	switch {
	case s.leaving:
		s.said = true
		s.peer.SetDeadline(int64(heartbeat)) // for the last output
	case s.once:
		s.over = true
		s.peer.SetDeadline(int64(heartbeat))
	default:
		s.silent = true
		s.peer.SetDeadline(int64(heartbeat))
	}
}

// End, Evict, Blocked, Run, Overdue, Abandoned and Closed implement exchange.Protocol. A stream runs no code of the application.
func (s *stream) End()          { s.over = true }
func (s *stream) Evict()        { s.over = true }
func (s *stream) Blocked(int64) {}
func (s *stream) Run()          {}
func (s *stream) Overdue()      {}
func (s *stream) Abandoned()    {}
func (s *stream) Closed()       { s.close() }

// A waiter is the client of a stream with a goroutine.
type waiter chan struct{}

func (w waiter) Loop() exchange.Loop { return nil }
func (w waiter) WakeHere()           {}
func (w waiter) Wake() {
	select {
	case w <- struct{}{}:
	default: // a wake-up is pending
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, maxAppended); return &b }}

// Serve implements exchange.EventStream.
func (s *stream) Serve(ctx context.Context, draining <-chan struct{}, w exchange.EventWriter) error {
	wake := make(waiter, 1)
	if err := s.open(wake); err != nil {
		return err
	}
	defer s.close()
	every := heartbeat
	if s.once {
		every = pollTime
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		more, err := s.write(w, s.next)
		switch {
		case err != nil || s.over:
			return err
		case s.Cut():
			return errSlow
		case s.expired.Load():
			return nil
		case more:
			continue
		}
		select {
		case <-wake:
			if !s.once {
				timer.Reset(every)
			}
		case <-timer.C:
			if s.once {
				return nil
			}
			s.silent = true
			timer.Reset(every)
		case <-draining:
			_, err := s.write(w, func(out []byte) ([]byte, bool) { return s.farewell(out), false })
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errSlow = errors.New("topic: the client is too slow")

// write sends the output of next. more is the result of next.
func (s *stream) write(w exchange.EventWriter, next func([]byte) ([]byte, bool)) (more bool, _ error) {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	out, more := next((*b)[:0])
	s.feed.Unsent(0)
	if len(out) == 0 {
		return more, nil
	}
	if cap(out) <= 4*maxAppended {
		*b = out
	}
	if _, err := w.Write(out); err != nil {
		return false, err
	}
	return more, w.Flush()
}
