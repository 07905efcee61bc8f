package report_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

func TestDiff(t *testing.T) {
	run := func(cpu, rate, ns []float64) *results.Run {
		row := results.Row{Peer: "dunlin"}
		for i := range cpu {
			row.Rounds = append(row.Rounds, results.Sample{results.CPU.Key: cpu[i], results.Throughput.Key: rate[i]})
		}
		return &results.Run{
			Scenarios: []results.Scenario{{
				Name: "json", Metrics: []string{results.CPU.Key, results.Throughput.Key}, Rows: []results.Row{row},
			}},
			Benchmarks: []results.Benchmark{{Name: "Hello", Values: map[string][]float64{"ns/op": ns}}},
		}
	}
	before := run([]float64{10, 11, 12}, []float64{100, 101, 102}, []float64{50, 50, 51, 51, 50})
	after := run([]float64{5, 6, 7}, []float64{100, 101, 103}, []float64{90, 91, 92, 93, 94})
	differences := report.Differences(before, after)

	table := report.DiffTable(differences, false)
	if len(table.Rows) != 2 || table.Rows[0][5] != "better" || table.Rows[1][5] != "WORSE" {
		t.Errorf("got\n%s\nwant the CPU time better and the benchmark worse", table.Text())
	}
	if all := report.DiffTable(differences, true); len(all.Rows) != 3 || all.Rows[1][5] != "~" {
		t.Errorf("got differences:\n%s\nwant three, the throughput within noise", all.Text())
	}
	if none := report.Differences(before, &results.Run{}); len(none) != 0 {
		t.Errorf("got %d differences to an empty run", len(none))
	}
}
