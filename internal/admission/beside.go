package admission

import "math"

// ReserveBeside reserves n bytes in addition to the body of the current request, without waiting. working reports that the body
// has been read completely. It returns false if there is not enough memory, or if the holder is being evicted.
func (a *Account) ReserveBeside(n int64, working bool) bool {
	if n > 0 && !a.reserveBeside(min(n, math.MaxInt64/2)) {
		return false
	}
	if working {
		return a.Working(true)
	}
	return !a.Ending()
}

func (a *Account) reserveBeside(n int64) bool {
	a.mu.Lock()
	a.beside += n
	body, unknown := a.body-a.beside+n, a.unknown
	a.mu.Unlock()
	outcome := a.ReserveBody(body)
	if outcome == MustWait {
		outcome = a.Refuse()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unknown = unknown
	if outcome != Granted {
		a.beside -= n
	}
	return outcome == Granted
}
