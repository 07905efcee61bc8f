package gcpace

import (
	"slices"
	"time"
)

// lows holds the minimum of the values of the last second, or of a longer time if there were few values. The minimum of a few
// collections is not the live part of a heap: if processors are scarce and the goal is too large, more is allocated while the
// collector marks, and all of it counts as live.
type lows struct {
	recent [lowParts]int64 // minimum of each part; the current one is at index at
	at     int
	parts  int // number of valid parts
	since  time.Time
}

const (
	lowParts = 8
	lowPart  = 128 * time.Millisecond
)

// add adds n and returns the minimum.
func (l *lows) add(n int64, now time.Time) int64 {
	if l.parts == 0 || now.Sub(l.since) >= lowPart {
		l.at = (l.at + 1) % lowParts
		l.parts = min(l.parts+1, lowParts)
		l.recent[l.at], l.since = n, now
	}
	l.recent[l.at] = min(l.recent[l.at], n)
	least := n
	for i := range l.parts {
		least = min(least, l.recent[(l.at-i+lowParts)%lowParts])
	}
	return least
}

// lastFew holds the last few values.
type lastFew struct {
	recent []int64
}

// mean adds n and returns the mean of the last values, at most limit.
func (l *lastFew) mean(n int64, limit int) (mean int64) {
	l.recent = append(l.recent, n)
	if len(l.recent) > limit {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	for _, n := range l.recent {
		mean += n / int64(len(l.recent))
	}
	return mean
}
