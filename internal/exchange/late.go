package exchange

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A timeout on the time an action may take works like this: when the time has
// passed, the client is answered with 503 and its connection closed, while the
// action runs on for as long as it likes. What it returns then is discarded. It
// keeps the memory of its request to itself until it ends, so nothing it does
// late can reach another request's answer.

// TimedOut reports whether an action of the route, whose request has the context ctx, has failed because its time was over.
func (r *Route) TimedOut(ctx context.Context, err error) bool {
	return r.Timeout > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == context.DeadlineExceeded
}

// ErrLate is what late code gets that still wants to use its connection.
var ErrLate error = lateError{}

type lateError struct{}

func (lateError) Error() string   { return "the request took too long" }
func (lateError) StatusCode() int { return http.StatusServiceUnavailable }

// LateContext is the context of a request that was answered without its action.
var LateContext = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	cancel()
	return ctx
}()

// A TimeoutContext is the context of a request under a timeout. It ends with
// context.DeadlineExceeded when the action has lost its answer, and not before: that is
// decided in one place, by who answers. Once the answer has begun it has no deadline.
type TimeoutContext struct {
	context.Context // the values of what it derives from
	parent          context.Context
	until           time.Time
	done            chan struct{}

	mu      sync.Mutex
	release func() bool // ends the watch on parent
	err     error
	lifted  bool
	after   map[*byte]func()
}

func NewTimeoutContext(parent context.Context, until time.Time) *TimeoutContext {
	// context.Cause asks for the cause by a value: that of a parent which ends later is not ours.
	c := &TimeoutContext{Context: context.WithoutCancel(parent), parent: parent, until: until, done: make(chan struct{})}
	if parent.Done() != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.release = context.AfterFunc(parent, func() { c.End(parent.Err()) }) // which may have ended
	}
	return c
}

// End ends the context, unless it has ended.
func (c *TimeoutContext) End(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	after, release := c.after, c.release
	c.after = nil
	c.mu.Unlock()
	if release != nil {
		release()
	}
	for _, f := range after {
		f() // of package context, which cancels what derives from this and waits for nothing
	}
}

// Lift lifts the deadline, because the answer has begun.
func (c *TimeoutContext) Lift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lifted = true
}

func (c *TimeoutContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	lifted := c.lifted
	c.mu.Unlock()
	until, ok := c.parent.Deadline()
	if !lifted && (!ok || c.until.Before(until)) {
		return c.until, true
	}
	return until, ok
}

func (c *TimeoutContext) Done() <-chan struct{} { return c.done }

func (c *TimeoutContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc spares package context a goroutine for each context that derives from
// this one.
func (c *TimeoutContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*byte]func())
	}
	key := new(byte)
	c.after[key] = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[key]
		delete(c.after, key)
		return waiting
	}
}

// A Race decides who answers a request under a timeout, where its action has a goroutine of
// its own: that one, or the one that waits for it. Where there is no timeout it is nil.
type Race struct {
	Context *TimeoutContext // of the request
	timeout time.Duration

	mu    sync.Mutex
	late  bool // the timeout has passed: the action has lost its connection
	begun bool // the answer has begun: the timeout is lifted
}

// Begin reports whether the action may answer, and lifts the timeout.
func (r *Race) Begin() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = !r.late
	if r.begun {
		r.Context.Lift()
	}
	return r.begun
}

// WhileMine calls f unless the action has lost its connection, which cannot happen
// while f runs.
func (r *Race) WhileMine(f func()) bool {
	if r == nil {
		f()
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late {
		return false
	}
	f()
	return true
}

// Expire reports whether the answer is to be given without the action, because that has
// not begun one.
func (r *Race) Expire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = !r.begun
	if r.late {
		r.Context.End(context.DeadlineExceeded)
	}
	return r.late
}

// A LateSink is the way to a connection that somebody else has answered.
type LateSink struct{}

func (LateSink) Write([]byte) (int, error)                    { return 0, ErrLate }
func (LateSink) Flush() error                                 { return ErrLate }
func (LateSink) ReadFrom(io.Reader) (int64, error)            { return 0, ErrLate }
func (LateSink) SetReadDeadline(time.Time) error              { return ErrLate }
func (LateSink) SetWriteDeadline(time.Time) error             { return ErrLate }
func (LateSink) EnableFullDuplex() error                      { return ErrLate }
func (LateSink) Finish(http.Header)                           {}
func (LateSink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, ErrLate }

// NewRace returns the race for a request whose context derives from parent.
func NewRace(parent context.Context, timeout time.Duration) *Race {
	return &Race{Context: NewTimeoutContext(parent, time.Now().Add(timeout)), timeout: timeout}
}

// Run is Finish on a goroutine of its own, until the timeout passes. Then, unless its answer
// has begun, the action is late: the caller answers without it, and leaves the wire to the
// action, after which the call is abandoned.
func (r *Race) Run(c Call, p Pipeline) (a Answer, late bool) {
	done := make(chan Answer, 1)
	go func() {
		returned := false
		defer func() {
			if !returned { // but ended its goroutine
				done <- p.Answer(p.Problem(http.StatusInternalServerError, "", errGoexit))
			}
		}()
		a := Finish(c)
		returned = true
		done <- a
	}()
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case a = <-done:
		return a, false
	case <-timer.C:
	}
	if !r.Expire() {
		return <-done, false
	}
	go func() {
		<-done
		c.Abandon()
	}()
	return Answer{}, true
}

var errGoexit = errors.New("the action ended its goroutine instead of returning")

// Finish runs the action of a call, and carries its answer out where it is made when it is
// sent.
func Finish(c Call) Answer {
	a := c.Run()
	if a.Kind() == Later {
		a = c.CarryOut(a)
	}
	return a
}
