package request_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/request"
)

// A visit of quick actions reads the clock a few times and serves all; one of slow actions ends early, and the next one earlier.
func TestSlowActionsEndVisit(t *testing.T) {
	const most = 1e6
	var wary uint8
	run := func(now *int64, requests int, each int64) (v request.Visit, looks int) {
		v = request.BeginVisit(&wary)
		for v.Served < requests {
			v.Served++
			*now += each
			if !v.Due() || v.Served == requests {
				continue
			}
			looks++
			if v.CheckTime(*now, most) {
				wary = 1
				break
			}
		}
		return v, looks
	}
	now := int64(1e9)
	for _, c := range []struct {
		requests     int
		each         int64
		served, next int // in the first visit, and in the one after it
		looks        int
	}{
		{1, 1e3, 1, 1, 0},
		{32, 1e3, 32, 32, 3},
		{128, 1e3, 128, 128, 6},
		{1000, 1e3, 1000, 1000, 35},
		{128, 3e5, 8, 5, 2},
		{128, 2e6, 8, 2, 2},
		{128, 1e5, 16, 12, 3},
	} {
		wary = 0
		v, looks := run(&now, c.requests, c.each)
		next, _ := run(&now, c.requests, c.each)
		if v.Served != c.served || next.Served != c.next || looks > c.looks {
			t.Errorf("%d requests of %d ns: got %d served with %d readings, then %d; want %d with %d, then %d",
				c.requests, c.each, v.Served, looks, next.Served, c.served, c.looks, c.next)
		}
		if now += 1e9; v.Over != (c.served < c.requests) {
			t.Errorf("%d requests of %d ns: over %v", c.requests, c.each, v.Over)
		}
	}
}

// The clock is read after each request in as many visits as the caller asks for, and seldom again in those after them.
func TestWaryVisits(t *testing.T) {
	wary := uint8(2)
	for _, want := range []int{9, 9, 2, 2} { // after the requests 1 to 9, or after 4 and 8
		looks := 0
		for v := request.BeginVisit(&wary); v.Served < 9; {
			v.Served++
			if v.Due() {
				looks++
				v.CheckTime(int64(v.Served), 1000)
			}
		}
		if looks != want {
			t.Errorf("got %d readings, want %d", looks, want)
		}
	}
}
