package middleware

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// BreakerConfig says when a Breaker opens.
type BreakerConfig struct {
	// Failures is how many calls in a row must fail for the breaker to open. Default: 5.
	Failures int

	// OpenFor is how long the breaker stays open before it lets one call through as a trial; if that takes as
	// long itself, another is let through. After a trial that failed it stays open twice as long, up to ten
	// times OpenFor. Default: 1 s.
	OpenFor time.Duration

	// OnChange, if set, is called when it opens and when it closes. It must be quick.
	OnChange func(open bool)
}

// A Breaker keeps an action from waiting for a service that does not answer: after some failures in a row calls fail at
// once, until a trial succeeds. It is for outgoing calls; make one for each service. All methods are safe for concurrent use.
type Breaker struct {
	config BreakerConfig

	mu       sync.Mutex
	failures int // in a row
	openFor  time.Duration
	until    time.Time // when a call is let through by a breaker that is open; zero for one that is not
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
	return &Breaker{config: c}
}

// Do calls f, or returns ErrOpen. An error of f counts as a failure, unless it says that ctx was cancelled: that says nothing of the
// service. A panic of f counts as one, and goes on.
func (b *Breaker) Do(ctx context.Context, f func() error) error {
	return b.do(ctx, f, func() bool { return false })
}

// do is Do where an error says nothing of the service if blameless reports so.
func (b *Breaker) do(ctx context.Context, f func() error, blameless func() bool) error {
	trial, ok := b.enter()
	if !ok {
		return ErrOpen
	}
	outcome := failed
	defer func() { b.leave(outcome, trial) }()
	err := f()
	switch {
	case err == nil:
		outcome = succeeded
	case errors.Is(err, context.Canceled) && ctx.Err() != nil, blameless():
		outcome = unknown
	}
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
	unknown breakerOutcome = iota
	failed
	succeeded
)

func (b *Breaker) leave(outcome breakerOutcome, trial bool) {
	b.mu.Lock()
	open := !b.until.IsZero()
	switch {
	case outcome == unknown && open && trial:
		b.until = time.Now()
	case outcome == unknown:
	case open && !trial: // it began before the breaker opened
	case outcome == succeeded:
		b.failures, b.openFor, b.until = 0, 0, time.Time{}
	default:
		if b.failures++; open || b.failures >= b.config.Failures {
			b.openFor = min(max(2*b.openFor, b.config.OpenFor), 10*b.config.OpenFor)
			b.until = time.Now().Add(b.openFor)
		}
	}
	now := !b.until.IsZero()
	b.mu.Unlock()
	if now != open && b.config.OnChange != nil {
		b.config.OnChange(now)
	}
}

// Transport returns a RoundTripper that sends by base, http.DefaultTransport if that is nil. Statuses 502, 503 and 504 count as
// failures, too; the response is the caller's all the same. A body of the request that cannot be read, or had not come when the
// time was over, counts as none: behind [Proxy] it is a client's.
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

var errUnavailable = errors.New("the service is not available")

func (t breakerTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	sent, body := watchBody(req)
	err = t.breaker.do(req.Context(), func() error {
		var failure error
		if resp, failure = t.base.RoundTrip(sent); failure != nil {
			return failure
		}
		switch resp.StatusCode {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return errUnavailable
		}
		return nil
	}, func() bool { return body.isToBlame(req.Context()) })
	switch {
	case err == errUnavailable:
		err = nil
	case err == ErrOpen && req.Body != nil:
		_ = req.Body.Close() // a RoundTripper closes it in any case
	}
	return resp, err
}
