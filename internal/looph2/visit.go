//go:build linux

package looph2

// A visit is the work of a session in one call of Data: it ends when its actions have taken long, and continues in the next
// turn of the loop, after other connections. While actions are quick it reads the clock seldom.
type visit struct {
	acted       int   // actions that it has run
	nextReading int   // the number of actions at which it reads the clock
	from        int64 // first reading of the clock, 0 for not yet
	over        bool  // the visit is over
	yields      bool  // other connections have their turn before the next visit, however short this one was
	slow        bool  // the previous visit used up its time; read the clock after each action
}

const (
	// firstReading is the number of actions before the first reading of the clock. The interval doubles after each reading, up to
	// maxInterval actions.
	firstReading = 4
	maxInterval  = 32
)

func (v *visit) begin() {
	*v = visit{nextReading: firstReading, slow: v.over}
	if v.slow {
		v.nextReading = 1
	}
}

// due reports whether it is time to read the clock.
func (v *visit) due() bool { return v.acted >= v.nextReading }

// checkTime reports whether the visit has taken longer than limit, in ns, by the clock reading now.
func (v *visit) checkTime(now, limit int64) bool {
	switch {
	case v.from == 0:
		v.from = now
	case now-v.from > limit:
		v.over = true
	}
	v.nextReading = v.acted + min(v.acted, maxInterval)
	if v.slow {
		v.nextReading = v.acted + 1
	}
	return v.over
}
