// Package suspend runs a function on a separate goroutine. The function may pause once, so that its caller can continue with
// a partial result.
package suspend

import "runtime"

// A Call is a function that runs, pauses at most once, and is resumed with an In or cancelled. It returns an Out.
type Call[In, Out any] struct {
	paused chan struct{} // closed when it has paused
	resume chan *In      // nil: cancelled
	done   chan struct{} // closed when it has ended

	// How, once it has.
	out   Out
	panic any
	exit  bool // the function ended by runtime.Goexit
}

// New returns a call that has not begun.
func New[In, Out any]() *Call[In, Out] {
	return &Call[In, Out]{paused: make(chan struct{}), resume: make(chan *In), done: make(chan struct{})}
}

// Go runs f. If f panics, recovered is called during the panic and returns the outcome, or false to make the caller panic.
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

// Wait waits until the function has paused or ended. In the second case it returns, panics, or ends
// the goroutine as the function has.
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

// Resume continues the function, and waits for its end like Wait.
func (c *Call[In, Out]) Resume(in *In) Out {
	c.resume <- in
	<-c.done
	return c.outcome()
}

// GiveUp cancels the function, and waits for its end.
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
