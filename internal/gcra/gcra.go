// Package gcra limits rates by the generic cell rate algorithm (ITU-T I.371): what is known of
// a key is one point in time, its theoretical arrival time (TAT), up to which it has used its quota in advance.
//
//	          now        TAT
//	───────────┼──────────┼──────────▶
//	           │◀─ used ─▶│            used ≤ tolerance: the quota, as time
//
// Each request moves the TAT on by one interval, the window divided by the quota; time
// alone brings the quota back. A key whose TAT has passed is as good as unknown, so
// forgetting it loses nothing.
package gcra

// A Rate is how much a key may do. Times are in one unit, which is the caller's.
type Rate struct {
	Interval  int64 // that one request uses
	Tolerance int64 // that may be used in advance: requests at once times Interval
}

// A Verdict says whether a request may pass.
type Verdict struct {
	Admitted bool
	Used     int64 // of the tolerance, with this request if it was admitted
	Wait     int64 // until a request would be admitted; 0 if this one was
}

// Take judges a request at a time, given the key's TAT (0 for unknown), and returns the TAT that
// is to be kept. What is refused leaves it as it is.
func (r Rate) Take(tat, now int64) (int64, Verdict) {
	used := max(tat-now, 0)
	if after := used + r.Interval; after <= r.Tolerance {
		return now + after, Verdict{true, after, 0}
	}
	return tat, Verdict{false, used, used + r.Interval - r.Tolerance}
}

// Remaining returns how many requests are left when so much is used.
func (r Rate) Remaining(used int64) int64 { return max(r.Tolerance-used, 0) / r.Interval }
