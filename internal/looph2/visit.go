//go:build linux

package looph2

// A visit is what a session does in one call of Data: it ends when its actions have taken long, and goes on in the
// next turn of the loop, when others have had theirs. The clock is looked at seldom while actions are quick.
type visit struct {
	acted  int   // actions that it has run
	lookAt int   // ... when the clock is to be looked at
	from   int64 // when it was first, 0 for not yet
	over   bool  // the visit is
	yields bool  // ... and others have their turn before the next one, however short it was
	slow   bool  // the one before was before all of its input was served
}

const (
	// firstLook is after how many actions the clock is looked at first, and then after twice as many; but after no more
	// than mostUnlooked others.
	firstLook    = 4
	mostUnlooked = 32
)

func (v *visit) begin() {
	*v = visit{lookAt: firstLook, slow: v.over}
	if v.slow {
		v.lookAt = 1
	}
}

// due reports whether the clock is to be looked at.
func (v *visit) due() bool { return v.acted >= v.lookAt }

// look notes the time, and says whether the visit is over that may take so long, in ns.
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
