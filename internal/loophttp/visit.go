//go:build linux

package loophttp

// A visit is one call of Data, which serves consecutive requests of a connection. If a visit takes long, other connections get
// their turn. The engine handles single long actions; a visit limits many short ones. Until a visit takes long, the clock is
// read seldom.
type visit struct {
	served int   // requests served
	from   int64 // first clock reading, 0 for none yet
	close  bool  // read the clock after each request
}

const (
	// lookEach is the number of requests between two clock readings.
	lookEach = 16
	// waryVisits is the number of visits of a driver that are watched closely after a long one.
	waryVisits = 64
)

// beginVisit returns a visit. wary is the number of visits of the driver that are still watched closely.
func beginVisit(wary *uint8) visit {
	if *wary == 0 {
		return visit{}
	}
	*wary--
	return visit{close: *wary > 0}
}

// due reports, after one more request, whether the clock must be read.
func (v *visit) due() bool {
	v.served++
	return v.close || v.served%lookEach == 0
}

// checkTime records the time now, and reports whether the visit has taken more than most, in ns.
func (v *visit) checkTime(now, most int64, wary *uint8) bool {
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
