package resilience

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/watchbody"
)

// BreakerConfig has the settings of a [Breaker]. A zero field selects its documented default.
type BreakerConfig struct {
	// Failures is the number of consecutive failures that opens the breaker. With Transport only
	// failures to connect count as consecutive failures. Default: 5.
	Failures int

	// OpenFor is the time for which the breaker stays open before it admits one call as a trial. If the trial takes longer than this
	// time, another trial is admitted. After a failed trial the breaker stays open twice as long, up to ten times OpenFor. Default: 1
	// s.
	OpenFor time.Duration

	// IsFailure reports, for Transport, whether a response counts as a failure of the service. It
	// should report false for a response that depends on the request alone, such as a 503 of one
	// endpoint. It must be safe for concurrent use. Default: it reports true for 502, 503 and 504.
	IsFailure func(*http.Response) bool

	// OnChange, if not nil, is called when the breaker opens and when it closes. It must return
	// quickly, and be safe for concurrent use.
	OnChange func(open bool)
}

// A Breaker is a circuit breaker for outgoing calls: while it is open, calls fail at once instead
// of waiting for an unavailable service. It opens after BreakerConfig.Failures consecutive failures, or
// when half of the calls of the last ten seconds have failed, if there were at least 20 calls. It closes
// when a trial succeeds. Make one Breaker for each service. All methods are safe for concurrent use.
type Breaker struct {
	config BreakerConfig

	mu       sync.Mutex
	failures int // consecutive
	recent   callWindow
	openFor  time.Duration
	until    time.Time // end of the open period; zero if the breaker is closed
}

// A callWindow counts the calls of the last seconds.
type callWindow struct {
	seconds [windowSeconds]struct{ calls, failed int }
	last    int64 // Unix time of the latest second
}

const (
	windowSeconds = 10
	windowLeast   = 20 // with fewer calls, the window does not open the breaker
)

// record counts a call, and reports whether half of the calls in the window have failed.
func (w *callWindow) record(now time.Time, failed bool) bool {
	second := now.Unix()
	if second-w.last >= windowSeconds || second < w.last-windowSeconds { // the second case: the clock was set back
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

// ErrOpen is the error of calls that an open Breaker rejects.
var ErrOpen = errors.New("the circuit breaker is open: calls have failed")

// NewBreaker returns a closed breaker. It panics for an invalid setting.
func NewBreaker(c BreakerConfig) *Breaker {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.OpenFor == 0 {
		c.OpenFor = time.Second
	}
	if c.Failures < 0 || c.OpenFor < 0 {
		panic("resilience: NewBreaker: Failures and OpenFor must not be negative")
	}
	if c.IsFailure == nil {
		c.IsFailure = func(resp *http.Response) bool {
			return resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusGatewayTimeout
		}
	}
	return &Breaker{config: c}
}

// Do calls f and returns its error, or returns ErrOpen without a call of f. An error of f counts as a
// failure, except for context.Canceled after ctx was cancelled. f should return nil for conditions that
// a client can cause, such as a row that is not found. Otherwise some such calls in a row open the
// breaker for all clients. A panic of f counts as a failure, and propagates.
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
	outcome := failed // if f panics
	defer func() { b.leave(outcome, trial) }()
	outcome, err = f()
	return err
}

// Open reports whether the breaker is open. An open breaker rejects all calls except trials.
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
	b.until = now.Add(b.openFor) // then another trial is admitted, because this trial may wait for a client's request body
	return true, true
}

type breakerOutcome uint8

const (
	unknown  breakerOutcome = iota // neither success nor failure of the service
	failed                         // a failure regardless of the request
	doubtful                       // a failure that the request may have caused; it counts only in the window
	succeeded
)

func (b *Breaker) leave(outcome breakerOutcome, trial bool) {
	b.mu.Lock()
	open, now := !b.until.IsZero(), time.Now()
	switch {
	case open && trial && (outcome == unknown || outcome == doubtful):
		b.until = now // the next call is a trial, too, because its request may not cause a failure
	case outcome == unknown:
	case open && !trial: // the call began before the breaker opened
	case outcome == succeeded && open:
		b.failures, b.openFor, b.until, b.recent = 0, 0, time.Time{}, callWindow{}
	case outcome == succeeded:
		b.failures, b.openFor = 0, 0
		b.recent.record(now, false)
	default:
		if b.failures++; outcome == doubtful {
			b.failures = 0 // the connection was established
		}
		if b.recent.record(now, true) || open || b.failures >= b.config.Failures {
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

// Transport returns a RoundTripper that sends requests by base, or by http.DefaultTransport if base
// is nil. Failures to connect count as consecutive failures. Other errors, such as a timeout or a lost
// connection, and responses for which IsFailure reports true, may be caused by one request. They open
// the breaker only if half of all calls fail. The caller always gets such a response. A request body that
// cannot be read, or that is incomplete at the deadline, is not a failure of the service, because with
// middleware.Proxy the body is that of a client.
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
	sent, body := watchbody.Of(req)
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
		case errors.Is(err, context.Canceled) && ctx.Err() != nil, body.IsToBlame(ctx):
			return unknown, err
		case errors.As(err, &network) && network.Op == "dial":
			return failed, err
		}
		return doubtful, err
	})
	if err == ErrOpen && req.Body != nil {
		_ = req.Body.Close() // a RoundTripper must close the body, also on errors
	}
	return resp, err
}
