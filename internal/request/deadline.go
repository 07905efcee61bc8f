package request

import "time"

// A Deadline is a time limit that a standard handler has set. The zero value is no limit.
type Deadline struct{ time.Time }

// Passed reports whether there is a limit and it has passed.
func (d Deadline) Passed() bool { return !d.IsZero() && time.Until(d.Time) <= 0 }

// Left returns how long an operation may block: the positive time to the limit, also after it, or granted if there is none.
func (d Deadline) Left(granted time.Duration) time.Duration {
	if d.IsZero() {
		return granted
	}
	return max(time.Until(d.Time), time.Nanosecond)
}
