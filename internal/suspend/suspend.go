// Package suspend runs a function on a separate goroutine. The function may pause once, so that its caller can continue with
// a partial result.
package suspend

import "runtime"

// A Call is one run of a function on a goroutine. The function may pause once; then it is resumed with an In or cancelled. It
// returns an Out.
type Call[In, Out any] struct {
	paused chan struct{} // closed when the function has paused
	resume chan *In      // gets the value of Resume; nil to cancel the function
	done   chan struct{} // closed when the function has ended

	// The result; valid after done is closed.
	out   Out
	panic any
	exit  bool // the function ended by runtime.Goexit
}

// New returns a call that has not begun.
func New[In, Out any]() *Call[In, Out] {
	return &Call[In, Out]{paused: make(chan struct{}), resume: make(chan *In), done: make(chan struct{})}
}

// Go runs f on a new goroutine. If f panics, recovered is called during the panic. It returns the result to use, or false to make
// the caller of Wait or Resume panic.
func (c *Call[In, Out]) Go(f func() Out, recovered func(v any) (out Out, ok bool)) {
	go func() {
		defer close(c.done)
		returned := false
		defer func() {
			if returned {
				return
			}
			v := recover()
			if v == nil {
				c.exit = true
				return
			}
			var ok bool
			if c.out, ok = recovered(v); !ok {
				c.panic = v
			}
		}()
		c.out = f()
		returned = true
	}()
}

// Wait waits until the function has paused or ended. If the function has ended, Wait returns its result, or panics or ends the
// goroutine as the function has done.
func (c *Call[In, Out]) Wait() (out Out, ended bool) {
	select {
	case <-c.done:
		return c.outcome(), true
	case <-c.paused:
		return out, false
	}
}

// Pause pauses the function that calls it. It returns the value given to Resume, or nil if the function is cancelled.
func (c *Call[In, Out]) Pause() *In {
	close(c.paused)
	return <-c.resume
}

// Resume continues the paused function, and waits for its end like Wait.
func (c *Call[In, Out]) Resume(in *In) Out {
	c.resume <- in
	<-c.done
	return c.outcome()
}

// GiveUp cancels the paused function, and waits for its end.
func (c *Call[In, Out]) GiveUp() {
	c.resume <- nil
	<-c.done
}

func (c *Call[In, Out]) outcome() Out {
	switch {
	case c.panic != nil:
		panic(c.panic)
	case c.exit:
		runtime.Goexit()
	}
	return c.out
}
