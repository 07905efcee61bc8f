package report

import (
	"fmt"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// A Difference compares a figure in two runs.
type Difference struct {
	Where  string // scenario and server, or benchmark
	Metric string
	Better bool // the change is an improvement, if there is a change
	stats.Change
}

// Differences compares all figures that both runs have. If the figures of the other servers also differ, the machine has
// changed.
func Differences(before, after *results.Run) []Difference {
	var all []Difference
	for _, s := range before.Scenarios {
		other := after.Scenario(s.Name)
		if other == nil {
			continue
		}
		for _, row := range s.Rows {
			if now := other.Row(row.Peer); now != nil {
				all = append(all, rowDifferences(s, row, *now)...)
			}
		}
	}
	for _, b := range before.Benchmarks {
		if now := after.Benchmark(b.Name); now != nil {
			all = append(all, benchmarkDifferences(b, *now)...)
		}
	}
	return all
}

func rowDifferences(s results.Scenario, before, after results.Row) []Difference {
	var all []Difference
	for _, key := range s.Metrics {
		metric, known := results.MetricByKey(key)
		old, now := before.Values(key), after.Values(key)
		if !known || len(old) == 0 || len(now) == 0 {
			continue
		}
		d := Difference{Where: s.Name + " " + before.Peer, Metric: metric.Label, Change: stats.Compare(old, now)}
		d.Better = (d.New.Median > d.Old.Median) == metric.Higher
		all = append(all, d)
	}
	return all
}

func benchmarkDifferences(before, after results.Benchmark) []Difference {
	var all []Difference
	for _, unit := range benchmarkUnits {
		old, now := before.Values[unit], after.Values[unit]
		if len(old) == 0 || len(now) == 0 {
			continue
		}
		d := Difference{Where: before.Name, Metric: unit, Change: stats.Compare(old, now)}
		d.Better = (d.New.Median > d.Old.Median) == (unit == "MB/s")
		all = append(all, d)
	}
	return all
}

// DiffTable lists the differences that are larger than the printed ranges, or all differences.
func DiffTable(differences []Difference, all bool) Table {
	t := Table{Heading: []string{"", "figure", "before", "after", "change", "verdict", "test"}}
	for _, d := range differences {
		if d.Beyond || all {
			t.Rows = append(t.Rows, []string{
				d.Where, d.Metric, cellOf(d.Old), cellOf(d.New), fmt.Sprintf("%+.1f %%", d.Percent), d.verdict(), d.Why,
			})
		}
	}
	return t
}

func (d Difference) verdict() string {
	switch {
	case d.Beyond && d.Better:
		return "better"
	case d.Beyond:
		return "WORSE"
	case d.Significant && d.Better:
		return "(better)"
	case d.Significant:
		return "(worse)"
	}
	return "~"
}

// Within returns the number of differences that are significant according to the test, although the printed ranges overlap.
func Within(differences []Difference) int {
	n := 0
	for _, d := range differences {
		if d.Significant && !d.Beyond {
			n++
		}
	}
	return n
}
