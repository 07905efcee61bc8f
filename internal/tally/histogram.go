package tally

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// A histogram counts durations in buckets whose width grows with the duration. Between a duration and its double there are four
// buckets, so a value read from the histogram is off by a quarter at most. In units of 256 ns:
//
//	bucket  0  1  2  3 │ 4  5  6  7 │ 8   9   10  11 │ 12 …
//	from    0  1  2  3 │ 4  5  6  7 │ 8   10  12  14 │ 16 …
//
// The last bucket begins at 60 s and has no end.
type histogram struct {
	buckets [buckets]atomic.Uint64
	max     atomic.Int64 // ns
}

const (
	unitShift = 8 // a unit is 256 ns
	subShift  = 2 // there are 1 << subShift buckets between a duration and its double
	subs      = 1 << subShift
	doublings = 26
	buckets   = (doublings + 1) * subs
)

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> unitShift
	if units < subs {
		return int(units)
	}
	double := bits.Len64(units) - subShift - 1
	return min((double+1)*subs+int(units>>double)&(subs-1), buckets-1)
}

// lowest returns the shortest duration of a bucket.
func lowest(bucket int) time.Duration {
	if bucket < subs {
		return time.Duration(bucket) << unitShift
	}
	double := bucket/subs - 1
	return time.Duration(bucket%subs+subs) << double << unitShift
}

// add counts n durations of d.
func (h *histogram) add(n uint64, d time.Duration) {
	for most := h.max.Load(); int64(d) > most; most = h.max.Load() {
		h.max.CompareAndSwap(most, int64(d))
	}
	h.buckets[bucketOf(d)].Add(n)
}

// addTo adds the counts to sum and returns the longest duration. Buckets above it are empty.
func (h *histogram) addTo(sum *[buckets]uint64) time.Duration {
	longest := time.Duration(h.max.Load())
	for i := range bucketOf(longest) + 1 {
		sum[i] += h.buckets[i].Load()
	}
	return longest
}

// Latencies is a snapshot of one or more histograms.
type Latencies struct {
	Max    time.Duration
	first  int      // index of the bucket of counts[0]
	counts []uint64 // up to the last bucket that is not empty
	total  uint64   // their sum
}

// trim sets the counts of l from a full set of buckets, without the empty ones at the beginning and the end.
func (l *Latencies) trim(full *[buckets]uint64) {
	first, end := 0, buckets
	for first < end && full[first] == 0 {
		first++
	}
	for end > first && full[end-1] == 0 {
		end--
	}
	if first == end {
		return
	}
	l.first, l.counts = first, slices.Clone(full[first:end])
	for _, n := range l.counts {
		l.total += n
	}
}

// Count returns the number of durations.
func (l *Latencies) Count() uint64 { return l.total }

// Quantile returns a duration that about the share q, from 0 to 1, of the durations do not exceed. It returns 0 for an empty
// snapshot.
func (l *Latencies) Quantile(q float64) time.Duration {
	if l.total == 0 {
		return 0
	}
	rank := min(max(uint64(math.Ceil(q*float64(l.total))), 1), l.total)
	var below uint64
	for i, n := range l.counts {
		if below+n < rank {
			below += n
			continue
		}
		if l.first+i == buckets-1 {
			break // the last bucket has no end
		}
		from, to := lowest(l.first+i), lowest(l.first+i+1)
		return min(from+time.Duration(float64(to-from)*float64(rank-below)/float64(n)), l.Max)
	}
	return l.Max
}

// Since returns the durations counted after an earlier snapshot of the same histogram. Its Max is the end of the
// highest bucket, or the overall Max if that is less.
func (l *Latencies) Since(earlier *Latencies) Latencies {
	var full [buckets]uint64
	copy(full[l.first:], l.counts)
	for i, n := range earlier.counts {
		full[earlier.first+i] -= min(n, full[earlier.first+i])
	}
	var since Latencies
	since.trim(&full)
	if end := since.first + len(since.counts); end == buckets {
		since.Max = l.Max
	} else if len(since.counts) > 0 {
		since.Max = min(lowest(end), l.Max)
	}
	return since
}

// Buckets yields the upper bound of each bucket and the number of durations below it, from the first bucket that is
// not empty to the last. The upper bound of the very last bucket is the maximum Duration.
func (l *Latencies) Buckets(yield func(below time.Duration, count uint64) bool) {
	var sum uint64
	for i, n := range l.counts {
		sum += n
		below := time.Duration(math.MaxInt64)
		if l.first+i+1 < buckets {
			below = lowest(l.first + i + 1)
		}
		if !yield(below, sum) {
			return
		}
	}
}
