//go:build linux

package looph2

// A visit is the work of a session in one call of Data: it ends when its actions have taken long, and continues in the next
// turn of the loop, after other connections. While actions are quick it reads the clock seldom.
type visit struct {
	acted  int   // actions that it has run
	lookAt int   // the number of actions at which it reads the clock
	from   int64 // first reading of the clock, 0 for not yet
	over   bool  // the visit is over
	yields bool  // other connections have their turn before the next visit, however short this one was
	slow   bool  // the previous visit ended before all of its input was served
}

const (
	// firstLook is the number of actions before the first reading of the clock. Each following reading is at twice the number
	// of actions of the one before, but at most mostUnlooked actions later.
	firstLook    = 4
	mostUnlooked = 32
)

func (v *visit) begin() {
	*v = visit{lookAt: firstLook, slow: v.over}
	if v.slow {
		v.lookAt = 1
	}
}

// due reports whether it is time to read the clock.
func (v *visit) due() bool { return v.acted >= v.lookAt }

// checkTime records the time, and reports whether the visit, which may take most ns, is over.
func (v *visit) checkTime(now, most int64) bool {
	switch {
	case v.from == 0:
		v.from = now
	case now-v.from > most:
		v.over = true
	}
	v.lookAt = v.acted + min(v.acted, mostUnlooked)
	if v.slow {
		v.lookAt = v.acted + 1
	}
	return v.over
}
