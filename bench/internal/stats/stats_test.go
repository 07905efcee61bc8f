package stats_test

import (
	"math"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

func TestSummarise(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		want   stats.Summary
	}{
		{"nothing", nil, stats.Summary{}},
		{"one", []float64{3}, stats.Summary{Median: 3, Min: 3, Max: 3, N: 1}},
		{"odd, out of order", []float64{9, 1, 5}, stats.Summary{Median: 5, Min: 1, Max: 9, N: 3}},
		{"even", []float64{4, 1, 2, 3}, stats.Summary{Median: 2.5, Min: 1, Max: 4, N: 4}},
	} {
		if got := stats.Summarise(test.values); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestSummarizeDoesNotSortItsArgument(t *testing.T) {
	rounds := []float64{3, 1, 2}
	stats.Summarise(rounds)
	stats.Compare(rounds, rounds)
	if rounds[0] != 3 {
		t.Errorf("Summarize sorted the rounds: %v", rounds)
	}
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after []float64
		percent       float64
		significant   bool
		beyond        bool
	}{
		{"five apart", []float64{10, 11, 10, 12, 11}, []float64{20, 21, 22, 20, 22}, 90.909, true, true},
		{"five the same", []float64{10, 11, 10, 12, 11}, []float64{11, 10, 12, 10, 11}, 0, false, false},
		{"five overlapping", []float64{10, 12, 14, 16, 18}, []float64{11, 13, 15, 17, 19}, 7.142, false, false},
		{"three apart: ranges decide", []float64{10, 11, 12}, []float64{5, 6, 7}, -45.454, true, true},
		{"three touching", []float64{10, 11, 12}, []float64{12, 13, 14}, 18.181, false, false},
		{"six shifted within the spread", []float64{10, 11, 12, 13, 14, 19}, []float64{15, 16, 17, 18, 20, 21}, 40, true, false},
		{"three close: the gap is no wider than the ranges", []float64{10, 11, 12}, []float64{13, 14, 15}, 27.272, true, false},
		{"one round is not significant", []float64{10}, []float64{20}, 100, true, false},
		{"from nothing", []float64{0, 0, 0}, []float64{5, 5, 5}, math.Inf(1), true, true},
		{"not measured", nil, []float64{5}, math.Inf(1), false, false},
	} {
		got := stats.Compare(test.before, test.after)
		if got.Significant != test.significant || got.Beyond != test.beyond {
			t.Errorf("%s: got significant %v, beyond the spread %v, want %v and %v (%s)",
				test.name, got.Significant, got.Beyond, test.significant, test.beyond, got.Why)
		}
		if got.Percent != test.percent && math.Abs(got.Percent-test.percent) > 0.001 {
			t.Errorf("%s: got got %v %%, want %v", test.name, got.Percent, test.percent)
		}
	}
}
