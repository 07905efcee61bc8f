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

// If an action exceeds its timeout, the client gets 503 and its connection closes, while the action continues to run without a
// limit. Its late answer is discarded. The action keeps the memory of its request until it ends, so that it cannot affect the
// answer to another request.

// TimedOut reports whether an action of the route failed because of its timeout. ctx is the context of its request.
func (r *Route) TimedOut(ctx context.Context, err error) bool {
	return r.Timeout > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == context.DeadlineExceeded
}

// ErrLate is the error for a late action that uses its connection.
var ErrLate error = lateError{}

type lateError struct{}

func (lateError) Error() string   { return "the request took too long" }
func (lateError) StatusCode() int { return http.StatusServiceUnavailable }

// LateContext returns the context of a request that was answered without its action.
var LateContext = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	cancel()
	return ctx
}()

// A TimeoutContext is the context of a request with a timeout. It has no timer: the code that decides that the action is late
// ends it with context.DeadlineExceeded. When the answer has begun, the context has no deadline any more.
type TimeoutContext struct {
	context.Context // the values of the parent
	parent          context.Context
	until           time.Time
	done            chan struct{}

	mu      sync.Mutex
	release func() bool // stops watching parent
	err     error
	lifted  bool
	after   map[*byte]func()
}

func NewTimeoutContext(parent context.Context, until time.Time) *TimeoutContext {
	// context.Cause finds the cause of a parent by a value. WithoutCancel hides this value, because the parent may end later than
	// this context.
	c := &TimeoutContext{Context: context.WithoutCancel(parent), parent: parent, until: until, done: make(chan struct{})}
	if parent.Done() != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.release = context.AfterFunc(parent, func() { c.End(parent.Err()) }) // immediately if parent has ended
	}
	return c
}

// End ends the context, unless it has already ended.
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
		f() // set by package context: it cancels derived contexts and does not block
	}
}

// Lift removes the deadline because the answer has begun.
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

// AfterFunc saves package context a goroutine for each derived context.
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

// A Race decides between the two possible answers to a request with a timeout: the answer of the action, which has a goroutine of
// its own, and the answer of the goroutine that waits for the action. A request without a timeout has a nil *Race.
type Race struct {
	Context *TimeoutContext // the context of the request
	timeout time.Duration

	mu    sync.Mutex
	late  bool // the timeout has passed: the action has lost its connection
	begun bool // the answer has begun: the timeout is lifted
}

// Begin reports whether the action may answer. If so, it lifts the timeout.
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

// WhileMine calls f unless the action has lost its connection, and reports whether it has called f. The action cannot lose the
// connection while f runs.
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

// Expire is called at the timeout. It reports whether the request must be answered without the action, because the action has not
// begun an answer. Then the action has lost its connection, and the context ends.
func (r *Race) Expire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = !r.begun
	if r.late {
		r.Context.End(context.DeadlineExceeded)
	}
	return r.late
}

// A LateSink is the sink of a late action.
type LateSink struct{}

func (LateSink) Write([]byte) (int, error)                    { return 0, ErrLate }
func (LateSink) Flush() error                                 { return ErrLate }
func (LateSink) ReadFrom(io.Reader) (int64, error)            { return 0, ErrLate }
func (LateSink) SetReadDeadline(time.Time) error              { return ErrLate }
func (LateSink) SetWriteDeadline(time.Time) error             { return ErrLate }
func (LateSink) EnableFullDuplex() error                      { return ErrLate }
func (LateSink) Finish(http.Header)                           {}
func (LateSink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, ErrLate }

// NewRace returns the race for a request. The request's context derives from parent.
func NewRace(parent context.Context, timeout time.Duration) *Race {
	return &Race{Context: NewTimeoutContext(parent, time.Now().Add(timeout)), timeout: timeout}
}

// Run calls Finish on a new goroutine and waits for it until the timeout passes. If the answer has not begun by then, late is
// true: the caller answers instead of the action, and leaves the wire to the action. Run calls Call.Abandon when the late action
// has ended.
func (r *Race) Run(c Call, p Pipeline) (a Answer, late bool) {
	done := make(chan Answer, 1)
	go func() {
		returned := false
		defer func() {
			if !returned { // the action has called runtime.Goexit
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

// Finish runs the action of a call, and produces its answer if it has the kind Later.
func Finish(c Call) Answer {
	a := c.Run()
	if a.Kind() == Later {
		a = c.Produce(a)
	}
	return a
}
