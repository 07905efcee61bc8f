package admission

import "math"

// AddBody reserves n bytes besides what ReserveBody has granted, and does not wait. complete says that the body has
// been read to its end. It reports false if there is no room, or if the holder is being ended.
func (a *Account) AddBody(n int64, complete bool) bool {
	if n > 0 {
		outcome := a.ReserveBody(a.Body() + min(n, math.MaxInt64/2))
		if outcome == MustWait {
			outcome = a.Refuse()
		}
		if outcome != Granted {
			return false
		}
	}
	if complete {
		return a.Working(true)
	}
	return !a.Ending()
}
