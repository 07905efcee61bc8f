// Package stats summarizes the values of a few rounds, and compares the values of two sets of rounds.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// A Summary has the values of a metric that are printed.
type Summary struct {
	Median, Min, Max float64
	N                int
}

// Summarise returns the summary of values. If there are no values, the summary is zero.
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

// A Change is the difference between two sets of rounds.
type Change struct {
	Old, New    Summary
	Percent     float64 // difference of the medians in percent of the old one; +Inf if only the old median is 0
	Significant bool    // the sets differ according to the test that Why names
	Beyond      bool    // the sets differ significantly, and the printed ranges do not overlap
	Why         string
}

// enough is the minimum number of rounds in each set with which the Mann-Whitney test can find a significant difference at 5
// %.
const enough = 4

// Compare compares two sets of rounds with the Mann-Whitney U test at 5 %, as benchstat does. If a set has fewer than four
// rounds, this test cannot find a significant difference. Compare then requires ranges that do not overlap.
//
// A run has a thousand figures, and 5 % of them would be significant by chance. Therefore a change is Beyond only if, in
// addition, the ranges do not overlap. If two sets of six rounds come from the same program, their ranges are disjoint by
// chance in one of 462 cases. The range of six rounds contains the true median in 97 of 100 cases. If a set has fewer than
// four rounds, the gap between the ranges must also be wider than each range. A single round proves nothing.
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
	// NewSample sorts its argument, but the callers need the order of the rounds.
	thresholds := &benchmath.DefaultThresholds
	result := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(before), thresholds),
		benchmath.NewSample(slices.Clone(after), thresholds))
	c.Significant = result.P < result.Alpha
	c.Beyond = c.Significant && gap > 0
	c.Why = result.String()
	return c
}
