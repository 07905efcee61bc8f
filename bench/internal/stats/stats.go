// Package stats summarises a few rounds and compares two sets of rounds.
package stats

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// A Summary has the printed values of a metric.
type Summary struct {
	Median, Min, Max float64
	N                int
}

// Summarise returns the summary of values. Without values it is zero.
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
	Percent     float64 // of the medians; +Inf if only the old one is 0
	Significant bool    // the two sets differ; Why gives the reason
	Beyond      bool    // Significant, and the printed ranges do not overlap
	Why         string
}

// enough is the minimum number of rounds on each side for which the Mann-Whitney test can reach 5 %.
const enough = 4

// Compare uses the Mann-Whitney U test at 5 %, as benchstat does. With fewer than four rounds on a side that test finds no
// difference significant; then Compare requires ranges that do not overlap.
//
// A run has a thousand figures; 5 % of them would be significant by chance. So a change is Beyond only if the ranges do not
// overlap either. By chance, two times six rounds of the same program are that far apart once in 462 times, and the range of
// six holds the true median 97 times in 100. With fewer than four rounds, the gap must also be wider than each range. A
// single round proves nothing.
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
	// NewSample sorts in place. The callers need their rounds in order.
	thresholds := &benchmath.DefaultThresholds
	result := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(before), thresholds),
		benchmath.NewSample(slices.Clone(after), thresholds))
	c.Significant = result.P < result.Alpha
	c.Beyond = c.Significant && gap > 0
	c.Why = result.String()
	return c
}
