//go:build linux

package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/gate"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// Each promise limits a figure that is measured; otherwise it could never be broken.
func TestPromisesReferToMeasuredFigures(t *testing.T) {
	promises, err := gate.Promises()
	if err != nil {
		t.Fatal(err)
	}
	if len(promises) == 0 {
		t.Fatal("got no promises")
	}
	for _, p := range promises {
		for _, f := range []gate.Figure{p.Of, p.Per} {
			if f.Scenario == "" {
				continue
			}
			scenarios, err := scenario.Named([]string{f.Scenario})
			if err != nil {
				t.Errorf("%q: %v", p.Words, err)
				continue
			}
			peers, err := peer.Named([]string{f.Peer})
			if err != nil {
				t.Errorf("%q: %v", p.Words, err)
				continue
			}
			if !scenarios[0].Takes(peers[0], nil) {
				t.Errorf("%q: got peer %s is not in scenario %s", p.Words, f.Peer, f.Scenario)
			}
			if !slices.Contains(scenarios[0].MetricKeys(), f.Metric) {
				t.Errorf("%q: got scenario %s has no metric %s", p.Words, f.Scenario, f.Metric)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	bound := func(v float64) *float64 { return &v }
	own := gate.Figure{Scenario: "json", Peer: "dunlin", Metric: "cpu"}
	other := gate.Figure{Scenario: "json", Peer: "fasthttp", Metric: "cpu"}
	allocations := gate.Figure{Benchmark: "Hello/dunlin", Unit: "allocs/op"}
	run := &results.Run{
		Scenarios: []results.Scenario{{Name: "json", Rows: []results.Row{
			{Peer: "dunlin", Rounds: []results.Sample{{"cpu": 100}, {"cpu": 9}, {"cpu": 8}}},
			{Peer: "fasthttp", Rounds: []results.Sample{{"cpu": 10}, {"cpu": 10}, {"cpu": 1}}},
			{Peer: "zero", Rounds: []results.Sample{{"cpu": 0}}},
		}}},
		Benchmarks: []results.Benchmark{{Name: "Hello/dunlin", Values: map[string][]float64{"allocs/op": {1, 1, 0}}}},
	}
	for _, test := range []struct {
		name    string
		promise gate.Promise
		want    gate.Outcome
		got     float64
	}{
		{"a median below its bound", gate.Promise{Of: own, AtMost: bound(9)}, gate.Kept, 9},
		{"a ratio of medians", gate.Promise{Of: own, Per: other, AtMost: bound(0.95)}, gate.Kept, 0.9},
		{"a ratio just beyond", gate.Promise{Of: own, Per: other, AtMost: bound(0.88), Tolerance: 0.03}, gate.Close, 0.9},
		{"a ratio beyond the tolerance", gate.Promise{Of: own, Per: other, AtMost: bound(0.80), Tolerance: 0.03}, gate.Broken, 0.9},
		{"at least, reached", gate.Promise{Of: own, AtLeast: bound(9)}, gate.Kept, 9},
		{"at least, missed", gate.Promise{Of: own, AtLeast: bound(10), Tolerance: 0.05}, gate.Broken, 9},
		{"no allocation, but one", gate.Promise{Of: allocations, AtMost: bound(0), Tolerance: 0.2}, gate.Broken, 1},
		{"no such peer", gate.Promise{Of: gate.Figure{Scenario: "json", Peer: "gone", Metric: "cpu"}, AtMost: bound(9)}, gate.Unmeasured, 0},
		{"no such scenario", gate.Promise{Of: gate.Figure{Scenario: "xml", Peer: "dunlin", Metric: "cpu"}, AtMost: bound(9)}, gate.Unmeasured, 0},
		{"over nothing", gate.Promise{Of: own, Per: gate.Figure{Scenario: "json", Peer: "zero", Metric: "cpu"}, AtMost: bound(9)}, gate.Unmeasured, 0},
	} {
		got := gate.Judge([]gate.Promise{test.promise}, run)[0]
		if got.Outcome != test.want || got.Got != test.got {
			t.Errorf("%s: got got %v with %v, want %v with %v", test.name, got.Outcome, got.Got, test.want, test.got)
		}
	}
}

func TestNeeds(t *testing.T) {
	scenarios, peers := gate.Needs([]gate.Promise{
		{Of: gate.Figure{Scenario: "json", Peer: "dunlin"}, Per: gate.Figure{Scenario: "json", Peer: "fasthttp"}},
		{Of: gate.Figure{Benchmark: "Hello/dunlin"}},
	})
	if strings.Join(scenarios, ",") != "json" || strings.Join(peers, ",") != "dunlin,fasthttp" {
		t.Errorf("got scenarios %v and peers %v, want json with dunlin and fasthttp", scenarios, peers)
	}
}
