// Package stats summarises a handful of rounds and compares two of them.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Summary is what is printed of a metric's rounds.
type Summary struct {
	Median, Min, Max float64
	N                int
}

// Summarise returns the zero Summary for no values.
func Summarise(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Summary{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], N: len(sorted)}
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Change is the difference between two sets of rounds.
type Change struct {
	Old, New    Summary
	Percent     float64 // of the medians; +Inf if only the old one is 0
	Significant bool    // the two sets differ, as Why says
	Beyond      bool    // and so much that what is printed of them has nothing in common
	Why         string
}

// enough is how many rounds each side needs before the Mann-Whitney test can reach 5 %.
const enough = 4

// Compare decides as benchstat does, by the Mann-Whitney U test at 5 %. That test cannot call any
// difference of fewer than four rounds significant; there, ranges that do not touch decide.
//
// A run has a thousand figures, of which 5 % would be called different for nothing. So a change is Beyond
// only if the ranges do not touch either. Two times six rounds of the same program are that far apart once in
// 462 times, and the range of six holds the true median in 97 of 100. Of fewer than four rounds the gap
// must be wider than either range too, and a single round says nothing.
func Compare(before, after []float64) Change {
	c := Change{Old: Summarise(before), New: Summarise(after)}
	switch {
	case c.Old.Median != 0:
		c.Percent = 100 * (c.New.Median - c.Old.Median) / c.Old.Median
	case c.New.Median != 0:
		c.Percent = math.Inf(1)
	}
	if len(before) == 0 || len(after) == 0 {
		c.Why = "not measured on both sides"
		return c
	}
	gap := max(c.New.Min-c.Old.Max, c.Old.Min-c.New.Max)
	fewest := min(len(before), len(after))
	if fewest < enough {
		c.Significant = gap > 0
		c.Beyond = fewest > 1 && gap > 0 && gap > max(c.Old.Max-c.Old.Min, c.New.Max-c.New.Min)
		c.Why = fmt.Sprintf("ranges, n=%d+%d", len(before), len(after))
		return c
	}
	// NewSample sorts in place, and the callers keep their rounds in order.
	thresholds := &benchmath.DefaultThresholds
	result := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(before), thresholds),
		benchmath.NewSample(slices.Clone(after), thresholds))
	c.Significant = result.P < result.Alpha
	c.Beyond = c.Significant && gap > 0
	c.Why = result.String()
	return c
}
