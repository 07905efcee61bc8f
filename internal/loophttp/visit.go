//go:build linux

package loophttp

// A visit is one call of Data, which serves consecutive requests of a connection. If a visit takes long, other connections get
// their turn. The engine handles single long actions; a visit limits many short actions. Until a visit takes long, the clock is
// read seldom.
type visit struct {
	served int   // requests served
	from   int64 // first clock reading, 0 for none yet
	close  bool  // read the clock after each request
}

const (
	// lookEach is the number of requests between two clock readings.
	lookEach = 16
	// visitsAfterLong is the number of visits of a driver, after a long visit, in which the clock is read after each request.
	visitsAfterLong = 64
)

// beginVisit returns a visit. closeVisits is the number of remaining visits of the driver in which the clock is read after each
// request.
func beginVisit(closeVisits *uint8) visit {
	if *closeVisits == 0 {
		return visit{}
	}
	*closeVisits--
	return visit{close: *closeVisits > 0}
}

// due reports, after one more request, whether the clock must be read.
func (v *visit) due() bool {
	v.served++
	return v.close || v.served%lookEach == 0
}

// checkTime records the clock reading now, and reports whether the visit has taken longer than limit, in ns.
func (v *visit) checkTime(now, limit int64, closeVisits *uint8) bool {
	if v.from == 0 {
		v.from = now
		return false
	}
	if now-v.from <= limit {
		return false
	}
	*closeVisits = visitsAfterLong
	return true
}
