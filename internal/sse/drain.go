package sse

import "sync"

// A Drain tells open streams that the server is about to end. It is a list, since a context
// that each waits on would cost more than the rest of its state.
type Drain struct {
	mu      sync.Mutex
	first   *Listener
	told    bool // the end has begun
	watched bool // a goroutine waits for it
}

// A Listener is a stream's place in the list.
type Listener struct {
	Stream     Stream
	prev, next *Listener
}

// A Stream is told once, when the end has begun. It must not call methods of the Drain then.
type Stream interface{ Draining() }

// Add has e told when begins is closed, at once if it is.
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

// Remove takes e out of the list.
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
