//go:build linux

package engine

import (
	"testing"
	"time"
)

func TestLongestWaitsAreRecorded(t *testing.T) {
	const second = int64(time.Second)
	var w waits
	check := func(at int64, recent, most time.Duration) {
		t.Helper()
		if got := w.recent(at); got != recent || time.Duration(w.most.Load()) != most {
			t.Errorf("at %v: got %v recently, %v at most; want %v, %v", time.Duration(at), got, time.Duration(w.most.Load()), recent, most)
		}
	}
	check(0, 0, 0)
	w.record(10*second, 5)
	w.record(10*second+1, 9)
	w.record(10*second+2, 7)
	check(10*second+3, 9, 9)
	w.record(11*second+1, 3)
	check(11*second+2, 9, 9) // of the second before
	check(12*second+1, 3, 9)
	w.record(12*second+2, 4)
	check(12*second+3, 4, 9)
	check(20*second, 0, 9)
	w.record(20*second, 1)
	check(20*second+1, 1, 9)
}
