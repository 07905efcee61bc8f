package sse

import "sync"

// A Drain notifies open streams that the server drains. It is a list, since a goroutine or context per stream would
// cost more than the rest of its state.
type Drain struct {
	mu      sync.Mutex
	first   *Listener
	told    bool // the stream was notified of the drain
	watched bool // a goroutine waits for the drain
}

// A Listener is the entry of a stream in the list.
type Listener struct {
	Stream     Stream
	prev, next *Listener
}

// A Stream is notified once, when the drain begins. Draining must not call methods of the Drain.
type Stream interface{ Draining() }

// Add adds e to the list. Its stream is notified when begins is closed, at once if it is closed already.
func (d *Drain) Add(e *Listener, begins <-chan struct{}) {
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
			d.tell()
		}()
	}
	e.next = d.first
	if d.first != nil {
		d.first.prev = e
	}
	d.first = e
}

// Remove removes e from the list.
func (d *Drain) Remove(e *Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.prev != nil:
		e.prev.next = e.next
	case d.first == e:
		d.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

func (d *Drain) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = true
	for e := d.first; e != nil; e = e.next {
		e.Stream.Draining()
	}
}
