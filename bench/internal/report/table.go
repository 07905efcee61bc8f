// Package report converts results to tables, charts and pages.
package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// A Table has the rows of a scenario as text, for any output format.
type Table struct {
	Heading []string
	Rows    [][]string
	Failed  []string // peers without a row, with the reasons
}

// TableOf returns a table with a row for each peer and a column for each metric. A cell has the median and the range of the
// rounds.
func TableOf(s results.Scenario) Table {
	t := Table{Heading: []string{"server"}}
	for _, key := range s.Metrics {
		label := key
		if metric, known := results.MetricByKey(key); known {
			label = metric.Label
		}
		t.Heading = append(t.Heading, label)
	}
	for _, row := range s.Rows {
		if row.Failed != "" {
			t.Failed = append(t.Failed, row.Peer+": "+row.Failed)
		}
		if len(row.Rounds) == 0 {
			continue
		}
		cells := []string{row.Peer}
		for _, key := range s.Metrics {
			cells = append(cells, cell(row.Values(key)))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// cell returns the median, and the range if there are several values.
func cell(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return cellOf(stats.Summarise(values))
}

func cellOf(s stats.Summary) string {
	median, low, high := results.Format(s.Median), results.Format(s.Min), results.Format(s.Max)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, low, high)
}

// Text returns the table for a terminal. Names are aligned left and figures are aligned right.
func (t Table) Text() string {
	widths := make([]int, len(t.Heading))
	for _, row := range append([][]string{t.Heading}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Heading}, t.Rows...) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	for _, failed := range t.Failed {
		fmt.Fprintf(&b, "without %s\n", failed)
	}
	return b.String()
}

// Markdown returns a GitHub table.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(t.Heading)
	b.WriteString("| --- |" + strings.Repeat(" ---: |", len(t.Heading)-1) + "\n")
	for _, row := range t.Rows {
		line(row)
	}
	for _, failed := range t.Failed {
		fmt.Fprintf(&b, "\nWithout %s.\n", failed)
	}
	return b.String()
}

// BenchmarkTable returns the Go benchmarks of one package. Its columns are the units that the benchmarks report.
func BenchmarkTable(benchmarks []results.Benchmark, pkg string) Table {
	var units []string
	for _, unit := range benchmarkUnits {
		for _, b := range benchmarks {
			if b.Package == pkg && len(b.Values[unit]) > 0 {
				units = append(units, unit)
				break
			}
		}
	}
	t := Table{Heading: append([]string{"benchmark"}, units...)}
	for _, b := range benchmarks {
		if b.Package != pkg {
			continue
		}
		row := []string{b.Name}
		for _, unit := range units {
			row = append(row, cell(b.Values[unit]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// benchmarkUnits are the units of the columns, in order.
var benchmarkUnits = []string{"ns/op", "B/op", "allocs/op", "MB/s", "GCs"}

// BenchmarkPackages returns the packages of the benchmarks, in order.
func BenchmarkPackages(benchmarks []results.Benchmark) []string {
	var packages []string
	for _, b := range benchmarks {
		if len(packages) == 0 || packages[len(packages)-1] != b.Package {
			packages = append(packages, b.Package)
		}
	}
	return packages
}
