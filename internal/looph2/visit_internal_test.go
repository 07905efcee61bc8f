//go:build linux

package looph2

import "testing"

// A visit of quick actions reads the clock a few times and serves all; one of slow actions ends early, and the next ones
// earlier.
func TestSlowActionsEndVisit(t *testing.T) {
	const most = 1e6
	run := func(v *visit, now *int64, streams int, each int64) (acted, looks int) {
		v.begin()
		for v.acted < streams {
			v.acted++
			*now += each
			if !v.due() || v.acted == streams {
				continue
			}
			looks++
			if v.checkTime(*now, most) {
				break
			}
		}
		return v.acted, looks
	}
	now := int64(1e9)
	for _, c := range []struct {
		streams     int
		each        int64
		acted, next int // in the first visit, and in the one after it
		looks       int
	}{
		{1, 1e3, 1, 1, 0},
		{32, 1e3, 32, 32, 3},
		{128, 1e3, 128, 128, 6},
		{1000, 1e3, 1000, 1000, 35},
		{128, 3e5, 8, 5, 2},
		{128, 2e6, 8, 2, 2},
		{128, 1e5, 16, 12, 3},
	} {
		var v visit
		acted, looks := run(&v, &now, c.streams, c.each)
		next, _ := run(&v, &now, c.streams, c.each)
		if acted != c.acted || next != c.next || looks > c.looks {
			t.Errorf("%d streams of %d ns: got %d served with %d looks, then %d; want %d with %d, then %d", c.streams, c.each, acted, looks, next, c.acted, c.looks, c.next)
		}
		if now += 1e9; v.over != (c.acted < c.streams) {
			t.Errorf("%d streams of %d ns: over %v", c.streams, c.each, v.over)
		}
	}
	var v visit
	run(&v, &now, 128, 3e5)
	run(&v, &now, 3, 1e3)
	if acted, looks := run(&v, &now, 32, 1e3); acted != 32 || looks > 3 {
		t.Errorf("after a quick visit: got %d with %d looks", acted, looks)
	}
}
