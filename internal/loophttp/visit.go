//go:build linux

package loophttp

// A visit is one call of Data, which serves what a connection has asked in a row: others have their turn when that has taken
// long. The engine takes care of each single action that takes long; here it is about many that do not.
// The clock is looked at seldom as long as that never happens.
type visit struct {
	served int   // requests of it
	from   int64 // when the clock was looked at first, 0 for not yet
	close  bool  // the clock is looked at behind each request
}

const (
	// lookEach is behind how many requests the clock is looked at.
	lookEach = 16
	// waryVisits is how many visits of a driver are watched closely behind one that took long.
	waryVisits = 64
)

// beginVisit returns a visit; wary is how many of the driver's are to be watched closely.
func beginVisit(wary *uint8) visit {
	if *wary == 0 {
		return visit{}
	}
	*wary--
	return visit{close: *wary > 0}
}

// due reports whether the clock is to be looked at, behind one more request.
func (v *visit) due() bool {
	v.served++
	return v.close || v.served%lookEach == 0
}

// look notes the time, and reports whether the visit has taken more than most, in ns.
func (v *visit) look(now, most int64, wary *uint8) bool {
	if v.from == 0 {
		v.from = now
		return false
	}
	if now-v.from <= most {
		return false
	}
	*wary = waryVisits
	return true
}
