package gcpace

import (
	"slices"
	"time"
)

// lows remembers the least of what was noted in the last second, or longer where little
// was. The least of a few
// collections is not enough to say what of a heap is really live: where processors are short,
// a goal that is too large has more allocated while the collector marks, all of which
// counts as live, for as long as it takes.
type lows struct {
	recent [lowParts]int64 // the least of each part, the present one at index at
	at     int
	parts  int // that have begun, as far as they are remembered
	since  time.Time
}

const (
	lowParts = 8
	lowPart  = 128 * time.Millisecond
)

// note returns the least, n of now included.
func (l *lows) note(n int64, now time.Time) int64 {
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

// lastFew remembers what was noted last.
type lastFew struct {
	recent []int64
}

// mean returns the mean of the last most numbers, n included.
func (l *lastFew) mean(n int64, most int) (mean int64) {
	l.recent = append(l.recent, n)
	if len(l.recent) > most {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	for _, n := range l.recent {
		mean += n / int64(len(l.recent))
	}
	return mean
}
