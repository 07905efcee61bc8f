package sse

import (
	"sync"
	"time"
)

// A Drain notifies open streams that the server drains. It notifies one stream after another, so that their clients do not
// reconnect at the same time. It is a list, because a goroutine or a context for each stream would need more memory than the rest
// of the stream's state.
type Drain struct {
	mu      sync.Mutex
	first   *Listener
	count   int
	told    bool // the drain has begun
	watched bool // a goroutine waits for the drain
}

// A Listener is the entry of a stream in the list of a Drain.
type Listener struct {
	Stream     Stream
	prev, next *Listener
	added      bool // the entry is in the list
}

// A Stream is notified once when the drain begins. Its method Draining must not call methods of the Drain.
type Stream interface{ Draining() }

// Add adds e to the list. The stream of e is notified after begins is closed. If begins is already closed, the stream is notified
// at once. spread returns the time over which the ends of the given number of streams should be distributed.
func (d *Drain) Add(e *Listener, begins <-chan struct{}, spread func(streams int) time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		e.Stream.Draining()
		return
	}
	if !d.watched {
		d.watched = true
		go func() {
			<-begins
			d.tell(spread)
		}()
	}
	e.next = d.first
	if d.first != nil {
		d.first.prev = e
	}
	d.first = e
	e.added = true
	d.count++
}

// Remove removes e from the list.
func (d *Drain) Remove(e *Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(e)
}

// remove removes e from the list. The caller must hold d.mu.
func (d *Drain) remove(e *Listener) {
	if !e.added {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		d.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.prev, e.next, e.added = nil, nil, false
	d.count--
}

// During calls serve for a stream, which is in the list during the call. ends is closed when the stream should end.
func (d *Drain) During(begins <-chan struct{}, spread func(streams int) time.Duration, serve func(ends <-chan struct{}) error) error {
	ends := make(channel)
	e := &Listener{Stream: ends}
	d.Add(e, begins, spread)
	defer d.Remove(e)
	return serve(ends)
}

// A channel is a Stream that is closed when it is notified.
type channel chan struct{}

func (c channel) Draining() { close(c) }

// tell notifies all streams, distributed over the time that spread returns.
func (d *Drain) tell(spread func(streams int) time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = true
	most, begun := d.count, time.Now()
	over := spread(most)
	for told := 0; d.first != nil; told++ {
		if due := over * time.Duration(min(told, most)) / time.Duration(most); time.Since(begun) < due {
			d.mu.Unlock()
			time.Sleep(time.Until(begun.Add(due)))
			d.mu.Lock()
			if d.first == nil {
				return
			}
		}
		e := d.first
		d.remove(e)
		e.Stream.Draining()
	}
}
