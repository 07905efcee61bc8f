package middleware

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// BreakerConfig has the settings of a Breaker. The zero value of a field stands for its default.
type BreakerConfig struct {
	// Failures is how many calls in a row must fail for the breaker to open. By Transport only failures to connect count so. Default: 5.
	Failures int

	// OpenFor is how long the breaker stays open before it lets one call through as a trial; if that takes as
	// long itself, another is let through. After a trial that failed it stays open twice as long, up to ten
	// times OpenFor. Default: 1 s.
	OpenFor time.Duration

	// IsFailure reports whether a response counts as a failure of the service, by Transport. It must not be true for responses
	// that one request can cause by itself, such as a 503 of the application. Default: statuses 502, 503 and 504.
	IsFailure func(*http.Response) bool

	// OnChange, if set, is called when it opens and when it closes. It must be quick.
	OnChange func(open bool)
}

// A Breaker keeps an action from waiting for a service that does not answer: while it is open, calls fail at
// once. It opens after some failures in a row, or when half of the calls of the last ten seconds have failed, of 20 at least, and closes when
// a trial succeeds. It is for outgoing calls; make one for each service. All methods are safe for concurrent use.
type Breaker struct {
	config BreakerConfig

	mu       sync.Mutex
	failures int // in a row
	recent   callWindow
	openFor  time.Duration
	until    time.Time // when a call is let through by a breaker that is open; zero for one that is not
}

// A callWindow counts the calls of the last seconds.
type callWindow struct {
	seconds [windowSeconds]struct{ calls, failed int }
	last    int64 // Unix time of the latest second
}

const (
	windowSeconds = 10
	windowLeast   = 20 // calls below which a share says nothing
)

// note counts a call at a time, and reports whether half of those in the window have failed.
func (w *callWindow) note(now time.Time, failed bool) bool {
	second := now.Unix()
	if second-w.last >= windowSeconds || second < w.last-windowSeconds { // or the clock was set back
		w.last = second
		clear(w.seconds[:])
	}
	for ; w.last < second; w.last++ {
		w.seconds[(w.last+1)%windowSeconds] = struct{ calls, failed int }{}
	}
	at := &w.seconds[w.last%windowSeconds]
	if at.calls++; failed {
		at.failed++
	}
	calls, failures := 0, 0
	for _, s := range w.seconds {
		calls, failures = calls+s.calls, failures+s.failed
	}
	return calls >= windowLeast && 2*failures >= calls
}

// ErrOpen is the error of calls that a Breaker has not let through.
var ErrOpen = errors.New("the circuit breaker is open: calls have failed")

// NewBreaker returns a breaker that lets calls through.
func NewBreaker(c BreakerConfig) *Breaker {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.OpenFor == 0 {
		c.OpenFor = time.Second
	}
	if c.Failures < 0 || c.OpenFor < 0 {
		panic("middleware: NewBreaker: Failures and OpenFor must not be negative")
	}
	if c.IsFailure == nil {
		c.IsFailure = func(resp *http.Response) bool {
			return resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusGatewayTimeout
		}
	}
	return &Breaker{config: c}
}

// Do calls f, or returns ErrOpen. An error of f counts as a failure, unless it says that ctx was cancelled: that says nothing of the
// service. Have f return nil for what a client can cause by itself, such as a row that is not found: a few of these in a row would open
// the breaker for all clients. A panic of f counts as a failure, and goes on.
func (b *Breaker) Do(ctx context.Context, f func() error) error {
	return b.do(func() (breakerOutcome, error) {
		err := f()
		switch {
		case err == nil:
			return succeeded, nil
		case errors.Is(err, context.Canceled) && ctx.Err() != nil:
			return unknown, err
		}
		return failed, err
	})
}

func (b *Breaker) do(f func() (breakerOutcome, error)) (err error) {
	trial, ok := b.enter()
	if !ok {
		return ErrOpen
	}
	outcome := failed // unless f returns
	defer func() { b.leave(outcome, trial) }()
	outcome, err = f()
	return err
}

// Open reports whether calls fail at once.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.until.IsZero()
}

func (b *Breaker) enter() (trial, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case b.until.IsZero():
		return false, true
	case now.Before(b.until):
		return false, false
	}
	b.until = now.Add(b.openFor) // a trial may wait for a client's body: others do not wait for it for ever
	return true, true
}

type breakerOutcome uint8

const (
	unknown  breakerOutcome = iota // says nothing of the service
	failed                         // whatever was asked for
	doubtful                       // a failure that the request may have caused: counts as a share alone
	succeeded
)

func (b *Breaker) leave(outcome breakerOutcome, trial bool) {
	b.mu.Lock()
	open, now := !b.until.IsZero(), time.Now()
	switch {
	case open && trial && (outcome == unknown || outcome == doubtful):
		b.until = now // the next one may be of a client whose requests do not fail
	case outcome == unknown:
	case open && !trial: // it began before the breaker opened
	case outcome == succeeded && open:
		b.failures, b.openFor, b.until, b.recent = 0, 0, time.Time{}, callWindow{}
	case outcome == succeeded:
		b.failures, b.openFor = 0, 0
		b.recent.note(now, false)
	default:
		if b.failures++; outcome == doubtful {
			b.failures = 0 // it was connected
		}
		if b.recent.note(now, true) || open || b.failures >= b.config.Failures {
			b.openFor = min(max(2*b.openFor, b.config.OpenFor), 10*b.config.OpenFor)
			b.until = now.Add(b.openFor)
		}
	}
	opened := !b.until.IsZero()
	b.mu.Unlock()
	if opened != open && b.config.OnChange != nil {
		b.config.OnChange(opened)
	}
}

// Transport returns a RoundTripper that sends by base, http.DefaultTransport if that is nil. Failures to connect count in a row.
// Other errors, such as a timeout or a connection that breaks off, and responses for which IsFailure is true may be due to one
// request: they open the breaker only where half of all calls fail. The response is the caller's all the same. A request body that cannot be
// read, or that is incomplete when the time is over, counts as no failure: with [Proxy] it is a client's.
func (b *Breaker) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return breakerTransport{b, base}
}

type breakerTransport struct {
	breaker *Breaker
	base    http.RoundTripper
}

func (t breakerTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	sent, body := watchBody(req)
	err = t.breaker.do(func() (breakerOutcome, error) {
		var err error
		if resp, err = t.base.RoundTrip(sent); err == nil {
			if t.breaker.config.IsFailure(resp) {
				return doubtful, nil
			}
			return succeeded, nil
		}
		var network *net.OpError
		switch ctx := req.Context(); {
		case errors.Is(err, context.Canceled) && ctx.Err() != nil, body.isToBlame(ctx):
			return unknown, err
		case errors.As(err, &network) && network.Op == "dial":
			return failed, err
		}
		return doubtful, err
	})
	if err == ErrOpen && req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes it in any case
	}
	return resp, err
}
