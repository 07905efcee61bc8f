package middleware

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Maintenance answers requests with 503 while work is being done. The zero value lets all pass. Its methods may
// be called at any time, from any goroutine; it must not be copied.
type Maintenance struct {
	// Allow lets requests pass all the same, those of operators say. It is set before the first
	// request, and must be safe for concurrent use. Default: none.
	Allow func(*dunlin.Request) bool

	until atomic.Pointer[time.Time]
}

// Begin has requests refused until End. Their Retry-After (RFC 9110 section 10.2.3) says when it is
// expected to be over.
func (m *Maintenance) Begin(expectedEnd time.Time) { m.until.Store(&expectedEnd) }

// End lets requests pass again.
func (m *Maintenance) End() { m.until.Store(nil) }

// Active reports whether requests are refused.
func (m *Maintenance) Active() bool { return m.until.Load() != nil }

// Middleware refuses requests while m is active. Routes that are to answer all the time, such as health
// checks, are registered before it is used.
func (m *Maintenance) Middleware(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		until := m.until.Load()
		if until == nil || m.Allow != nil && m.Allow(r) {
			return next(r)
		}
		wait := max(int64(time.Until(*until)/time.Second)+1, 1)
		return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the service is being worked on"}).
			Header("Retry-After", strconv.FormatInt(wait, 10)).Cache(0)
	}
}
