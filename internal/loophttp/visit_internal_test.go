//go:build linux

package loophttp

import "testing"

// Fast requests are served consecutively with few clock readings. Slow ones end a visit, and the following visits end earlier.
func TestVisitIsBounded(t *testing.T) {
	const most = 1000
	run := func(closeVisits *uint8, requests int, each int64) (served, looks int) {
		now := int64(5)
		for v := beginVisit(closeVisits); served < requests; {
			now += each
			served++
			if v.due() {
				looks++
				if v.checkTime(now, most, closeVisits) {
					break
				}
			}
		}
		return served, looks
	}
	for name, test := range map[string]struct {
		each          int64
		served, looks int // of the first visit
		next, after   int // of the second visit
	}{
		"quick":      {1, 500, 31, 500, 31},
		"slow":       {300, 32, 2, 5, 5},
		"very slow":  {100_000, 32, 2, 2, 2},
		"just quick": {31, 64, 4, 34, 34},
	} {
		var closeVisits uint8
		if served, looks := run(&closeVisits, 500, test.each); served != test.served || looks != test.looks {
			t.Errorf("%s: got %d requests with %d looks, want %d and %d", name, served, looks, test.served, test.looks)
		}
		if served, looks := run(&closeVisits, 500, test.each); served != test.next || looks != test.after {
			t.Errorf("%s, then: got %d requests with %d looks, want %d and %d", name, served, looks, test.next, test.after)
		}
	}
	var closeVisits uint8
	run(&closeVisits, 500, 300)
	for range visitsAfterLong - 1 {
		run(&closeVisits, 1, 1)
	}
	if _, looks := run(&closeVisits, 500, 1); looks != 31 {
		t.Errorf("%d looks long after a slow visit, want 31", looks)
	}
}
