//go:build linux

package looph2

// A visit is the work of a session in one call of Data: it ends when its actions have taken long, and continues in the next
// turn of the loop, after other connections had theirs. The clock is read rarely while actions are quick.
type visit struct {
	acted  int   // number of actions run
	lookAt int   // number of actions at which the clock is read next
	from   int64 // time of the first reading, 0 for none yet
	over   bool  // the visit has ended
	yields bool  // others have their turn before the next visit, however short it was
	slow   bool  // the previous visit ended before all of its input was processed
}

const (
	// firstLook is the number of actions before the first reading of the clock. The number then doubles, up to mostUnlooked.
	firstLook    = 4
	mostUnlooked = 32
)

func (v *visit) begin() {
	*v = visit{lookAt: firstLook, slow: v.over}
	if v.slow {
		v.lookAt = 1
	}
}

// due reports whether the clock is to be read.
func (v *visit) due() bool { return v.acted >= v.lookAt }

// look records the time, and reports whether the visit has lasted for most, in ns.
func (v *visit) look(now, most int64) bool {
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
