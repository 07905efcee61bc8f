package middleware

import (
	"bytes"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/gcra"
)

// rateFields renders the response fields of a rate limit. They depend on one number, the used part
// of the quota. Since large numbers are rounded, there are only some hundreds of different field
// values. Each is rendered once and cached.
type rateFields struct {
	rate     gcra.Rate
	little   uint64                         // up to this usage above one request the fields are least, in nanoseconds
	least    *renderedRate                  // fields for a usage of one request
	inverse  uint64                         // of the interval, times 2^64, rounded down
	admitted []atomic.Pointer[renderedRate] // fields of admitted requests; its length is a power of two
	refused  []atomic.Pointer[renderedRate] // fields of refused requests; its length is a power of two

	name   string // quoted
	policy string

	problem *dunlin.ProblemDetails // the problem of refusals
	body    []byte                 // problem as JSON
}

type renderedRate struct {
	left, seconds int64 // in a refusal: seconds until the next attempt, and until the whole quota is available
	block         *dunlin.HeaderBlock
	limit         *dunlin.HeaderBlock // only the field RateLimit; nil in a refusal
}

const (
	// exactTo is the largest number that is sent exactly. Larger numbers are rounded to nine
	// significant bits, by less than 1 in 256.
	exactTo = 512

	// maxFields is the maximum number of cached blocks of each kind. Beyond it, blocks replace
	// each other.
	maxFields = 4096
)

// shiftOf returns the number of low bits of n that rounding clears.
func shiftOf(n int64) int { return max(bits.Len64(uint64(n))-9, 0) }

// roundDown and roundUp round n ≥ 0 to nine significant bits.
func roundDown(n int64) int64 {
	shift := shiftOf(n)
	return n >> shift << shift
}

func roundUp(n int64) int64 {
	shift := shiftOf(n)
	return (n + 1<<shift - 1) >> shift << shift
}

// rank returns how many rounded numbers are smaller than n, a rounded number.
func rank(n int64) int64 {
	shift := shiftOf(n)
	return n>>shift + int64(shift)*exactTo/2
}

func newRateFields(rate *RateLimitConfig, inNanos gcra.Rate) *rateFields {
	f := &rateFields{rate: inNanos, inverse: inverseOf(inNanos.Interval), name: `"` + rate.Name + `"`}
	f.policy = f.name + ";q=" + strconv.Itoa(rate.Limit)
	if rate.Window >= time.Second {
		f.policy += ";w=" + strconv.FormatInt(seconds(int64(rate.Window)), 10)
	}
	limit := strconv.Itoa(rate.Limit) + ` requests in ` + rate.Window.String()
	if rate.Burst != rate.Limit {
		limit = strconv.Itoa(rate.Burst) + ` requests at once, and of ` + limit + `,`
	}
	f.problem = &dunlin.ProblemDetails{
		Type:       "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Status:     http.StatusTooManyRequests,
		Detail:     "the limit of " + limit + " is reached",
		Extensions: map[string]any{"violated-policies": []string{rate.Name}},
	}
	f.body = bytes.Clone(dunlin.Problem(f.problem).Body())
	size := int64(1)
	for whole := inNanos.Tolerance; size < maxFields && size < rank(roundDown(int64(rate.Burst)))+rank(roundUp(seconds(whole)))+2; {
		size *= 2
	}
	f.admitted, f.refused = make([]atomic.Pointer[renderedRate], size), make([]atomic.Pointer[renderedRate], size)
	f.least = f.find(inNanos.Interval)
	for step := uint64(1 << 62); step > 0; step /= 2 { // find the largest usage with the same fields
		more := f.little + step
		if more > uint64(inNanos.Tolerance-inNanos.Interval) {
			continue
		}
		if left, reset := f.rounded(inNanos.Interval + int64(more)); left == f.least.left && reset == f.least.seconds {
			f.little = more
		}
	}
	return f
}

// seconds returns nanoseconds as seconds, rounded up.
func seconds(nanos int64) int64 { return (nanos + int64(time.Second) - 1) / int64(time.Second) }

func (f *rateFields) limit(left, reset int64) string {
	return f.name + ";r=" + strconv.FormatInt(left, 10) + ";t=" + strconv.FormatInt(reset, 10)
}

func inverseOf(interval int64) uint64 { return math.MaxUint64 / uint64(interval) }

// left returns rate.Remaining(used), computed without a division.
func (f *rateFields) left(used int64) int64 {
	rest, interval := uint64(max(f.rate.Tolerance-used, 0)), uint64(f.rate.Interval)
	n, _ := bits.Mul64(rest, f.inverse) // the quotient, or up to two less
	for over := rest - n*interval; over >= interval; over -= interval {
		n++
	}
	return int64(n)
}

// admit returns the fields of a response to an admitted request.
func (f *rateFields) admit(v gcra.Verdict) *renderedRate {
	if uint64(v.Used-f.rate.Interval) <= f.little { // most clients have used almost nothing
		return f.least
	}
	return f.find(v.Used)
}

// rounded returns the number of remaining requests and the seconds until the whole quota is available, both rounded, for a
// usage in nanoseconds.
func (f *rateFields) rounded(used int64) (left, reset int64) {
	left, reset = f.left(used), seconds(used)
	if left >= exactTo || reset >= exactTo {
		left, reset = roundDown(left), roundUp(reset)
	}
	return left, reset
}

// find returns the fields of a response to an admitted request, for a usage in nanoseconds.
func (f *rateFields) find(used int64) *renderedRate {
	left, reset := f.rounded(used)
	at := reset - left
	if left >= exactTo || reset >= exactTo {
		at = rank(reset) - rank(left)
	}
	slot := &f.admitted[int(at)&(len(f.admitted)-1)]
	e := slot.Load()
	if e == nil || e.left != left || e.seconds != reset {
		limit := f.limit(left, reset)
		e = &renderedRate{left, reset, dunlin.NewHeaderBlock("RateLimit-Policy", f.policy, "RateLimit", limit), dunlin.NewHeaderBlock("RateLimit", limit)}
		slot.Store(e)
	}
	return e
}

// add adds the fields to a response, after those of inner limits.
func (f *rateFields) add(resp dunlin.Response, v gcra.Verdict) dunlin.Response {
	e := f.admit(v)
	if !ext.Lacks(resp, e.block) && resp.Get("RateLimit") != "" {
		return resp.AddHeader("RateLimit-Policy", f.policy).AddHeader("RateLimit", e.limit.Get("RateLimit"))
	}
	return resp.With(e.block)
}

// refusal returns the 429 response to a request.
func (f *rateFields) refusal(r *dunlin.Request, v gcra.Verdict) dunlin.Response {
	reset, wait := roundUp(seconds(v.Used)), roundUp(seconds(v.Wait))
	slot := &f.refused[int(rank(reset)+rank(wait))&(len(f.refused)-1)]
	e := slot.Load()
	if e == nil || e.left != wait || e.seconds != reset {
		e = &renderedRate{left: wait, seconds: reset, block: dunlin.NewHeaderBlock("Content-Type", "application/problem+json",
			"Retry-After", strconv.FormatInt(wait, 10), "RateLimit-Policy", f.policy, "RateLimit", f.limit(0, reset))}
		slot.Store(e)
	}
	return inside.Formatted(r, dunlin.Empty().WithBody(f.body).Status(http.StatusTooManyRequests).With(e.block), f.problem)
}
