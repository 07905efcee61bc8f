package request

// A Visit is one call of Data, which serves consecutive requests of a connection. When the requests have taken long, the visit
// ends, so that other connections have their turn. The engine handles single long actions; a visit limits the time of many short
// ones. While actions are quick, it reads the clock seldom.
type Visit struct {
	Served int   // number of requests served
	Over   bool  // the requests have taken long
	wary   bool  // the clock is read after each request
	next   int   // the number of requests at which the clock is read
	from   int64 // the first reading, 0 before it
}

const (
	// firstReading is the number of requests before the first reading of the clock. The interval doubles after each reading, up to
	// maxInterval requests.
	firstReading = 4
	maxInterval  = 32
)

// BeginVisit returns a visit. wary is the number of visits, from this one on, in which the clock is read after each request.
// BeginVisit decrements it; the caller keeps it, and increases it after a visit that is over.
func BeginVisit(wary *uint8) Visit {
	if *wary == 0 {
		return Visit{next: firstReading}
	}
	*wary--
	return Visit{next: 1, wary: true}
}

// Due reports whether the clock must be read.
func (v *Visit) Due() bool { return v.Served >= v.next }

// CheckTime records the reading now of the clock, and reports whether the visit has taken longer than limit, in ns.
func (v *Visit) CheckTime(now, limit int64) bool {
	switch {
	case v.from == 0:
		v.from = now
	case now-v.from > limit:
		v.Over = true
	}
	v.next = v.Served + 1
	if !v.wary {
		v.next = v.Served + min(v.Served, maxInterval)
	}
	return v.Over
}
