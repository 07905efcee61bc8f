// Package gcra limits rates by the generic cell rate algorithm (ITU-T I.371). The state of a key is one point in time,
// its theoretical arrival time (TAT), up to which it has used its quota in advance.
//
//	          now        TAT
//	───────────┼──────────┼──────────▶
//	           │◀─ used ─▶│            used ≤ tolerance: the quota, as time
//
// Each request moves the TAT forward by one interval, which is the window divided by the quota. As time passes, the
// quota returns. A key whose TAT has passed is equivalent to an unknown key, so it can be removed.
package gcra

import "context"

// A Rate is the rate limit of a key. All times have the same unit, chosen by the caller.
type Rate struct {
	Interval  int64 // time that one request uses
	Tolerance int64 // time that can be used in advance: the burst times Interval
}

// A Verdict is the decision about a request.
type Verdict struct {
	Admitted bool
	Used     int64 // part of the tolerance in use, including this request if it was admitted
	Wait     int64 // time until a request would be admitted; 0 if this request was admitted
}

// Take decides about a request at time now, given the key's TAT (0 if unknown), and returns the next TAT. A refused
// request leaves the TAT unchanged.
func (r Rate) Take(tat, now int64) (int64, Verdict) {
	used := max(tat-now, 0)
	if after := used + r.Interval; after <= r.Tolerance {
		return now + after, Verdict{true, after, 0}
	}
	return tat, Verdict{false, used, used + r.Interval - r.Tolerance}
}

// TakeStored is Take for a TAT from a store. Such a TAT may be too far ahead, because the store's clock was set back, or a
// replica with another clock has taken over, or the limit was lowered. Then TakeStored treats the quota as used up. The caller
// must store the returned TAT, now + v.Used, at least until that time.
func (r Rate) TakeStored(tat, now int64) (int64, Verdict) {
	return r.Take(min(tat, now+r.Tolerance), now)
}

// A Store decides about requests in one atomic step, by its own clock. The stores of this repository implement it, also when
// store.Guard wraps them.
type Store interface {
	// TakeQuota decides about a request of a key, as TakeStored does. The times are in microseconds. The error is
	// errors.ErrUnsupported if the store wraps another store that cannot do this.
	TakeQuota(ctx context.Context, key string, rate Rate) (Verdict, error)
}

// Remaining returns the number of requests left when used is the part of the tolerance in use.
func (r Rate) Remaining(used int64) int64 { return max(r.Tolerance-used, 0) / r.Interval }
