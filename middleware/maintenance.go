package middleware

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Maintenance answers requests with 503 during maintenance. The zero value lets all requests pass.
// Its methods are safe for concurrent use. It must not be copied.
type Maintenance struct {
	// Allow reports whether a request passes during maintenance, such as a request of an operator. Set
	// it before the first request. It must be safe for concurrent use. Default: no request passes.
	Allow func(*dunlin.Request) bool

	until atomic.Pointer[time.Time]
}

// Begin refuses requests until End. Retry-After (RFC 9110 section 10.2.3) states the expected end.
func (m *Maintenance) Begin(expectedEnd time.Time) { m.until.Store(&expectedEnd) }

// End lets requests pass again.
func (m *Maintenance) End() { m.until.Store(nil) }

// Active reports whether requests are refused.
func (m *Maintenance) Active() bool { return m.until.Load() != nil }

// Middleware refuses requests while m is active. It must not wrap routes that must always answer, such
// as health checks.
func (m *Maintenance) Middleware(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		until := m.until.Load()
		if until == nil || m.Allow != nil && m.Allow(r) {
			return next(r)
		}
		wait := max(int64(time.Until(*until)/time.Second)+1, 1)
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the service is under maintenance"}).
			Header("Retry-After", strconv.FormatInt(wait, 10)).Cache(0)
	}
}
