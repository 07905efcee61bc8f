// Package suspend runs a function on a goroutine of its own that may pause once, for its caller to go
// on with what there is so far.
package suspend

import "runtime"

// A Call is a function that runs, pauses at most once, and is resumed with an In, or told to give up. It returns
// an Out.
type Call[In, Out any] struct {
	paused chan struct{} // closed when it has paused
	resume chan *In      // nil: give up
	done   chan struct{} // closed when it has ended

	// How, once it has.
	out   Out
	panic any
	exit  bool // by runtime.Goexit
}

// New returns a call that has not begun.
func New[In, Out any]() *Call[In, Out] {
	return &Call[In, Out]{paused: make(chan struct{}), resume: make(chan *In), done: make(chan struct{})}
}

// Go runs f. If it panics, recovered, which is called in the middle of that, makes the outcome, or says by false
// that the caller is to panic.
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

// Pause is for the function: it returns what it is resumed with, nil if it is to give up.
func (c *Call[In, Out]) Pause() *In {
	close(c.paused)
	return <-c.resume
}

// Resume has the function go on, and waits until it has ended, as Wait does.
func (c *Call[In, Out]) Resume(in *In) Out {
	c.resume <- in
	<-c.done
	return c.outcome()
}

// GiveUp has the function give up, and waits until it has ended, however it does.
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
