//go:build linux

package stress_test

import (
	"os"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// The maximum cost of Dunlin compared with net/http for the same work: a ratio of medians, measured in turns on the same
// core. It fails only in full runs, because a few short rounds concurrent with other tests are not significant.
func TestBesideNetHTTP(t *testing.T) {
	for _, c := range []struct {
		name, scenario, peer string
		metric               results.Metric
		bar                  float64
		wrk                  bool
	}{
		{"file of 100 MB, CPU a GB", "file", peer.DunlinFromStd, results.CPUPerGB, 1.0, true},
		{"start-up", "footprint", peer.Dunlin, results.StartUp, 1.2, false},
		{"start-up of std", "footprint", peer.DunlinStd, results.StartUp, 1.2, false},
		{"std, CPU of plain text", "plaintext-64", peer.DunlinStd, results.CPU, 1.02, true},
		{"std, CPU of JSON", "json", peer.DunlinStd, results.CPU, 1.02, true},
		{"std, CPU of an echo", "echo-1k", peer.DunlinStd, results.CPU, 1.02, true},
		{"std, memory at 64 connections", "plaintext-64", peer.DunlinStd, results.PeakRSS, 1.3, true},
		{"std, memory at 1,000 connections", "plaintext-1000", peer.DunlinStd, results.PeakRSS, 1.3, true},
		{"std, memory of an idle connection", "idle-memory", peer.DunlinStd, results.PerConn, 1.3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.scenario == "file" && !*full {
				t.Skip("transfers several GB; runs with -full")
			}
			if c.wrk {
				need(t, "wrk", "wrk")
			}
			own, other := rounds(t, c.scenario, c.metric, c.peer, peer.NetHTTP)
			ratio := own.Median / other.Median
			t.Logf("%s: %s %s (%s to %s), net/http's %s (%s to %s): %.3f times (bar: %.2f)", c.name, results.Format(own.Median), c.metric.Unit,
				results.Format(own.Min), results.Format(own.Max), results.Format(other.Median), results.Format(other.Min), results.Format(other.Max), ratio, c.bar)
			if *full && ratio > c.bar*(1+besideTolerance) {
				t.Errorf("%s: got %.3f times net/http's, more than %.2f", c.name, ratio, c.bar)
			}
		})
	}
}

// besideTolerance is the difference of medians that occurs by chance on a quiet machine.
const besideTolerance = 0.02

// rounds measures two servers in turn and returns the results for each.
func rounds(t *testing.T, name string, metric results.Metric, own, other string) (ofOwn, ofOther stats.Summary) {
	t.Helper()
	f := folders(t)
	if err := os.MkdirAll(f.Build, 0o755); err != nil {
		t.Fatal(err)
	}
	scenarios, err := scenario.Named([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	peers, err := peer.Named([]string{own, other})
	if err != nil {
		t.Fatal(err)
	}
	cores, _ := proc.Assign()
	env := &scenario.Env{
		Folders: f, Cores: cores, Duration: either(200*time.Millisecond, time.Second), Short: !*full, Self: build(t, comparePackage),
	}
	built, values := make([]peer.Built, len(peers)), make([][]float64, len(peers))
	for i, p := range peers {
		if built[i], err = peer.Build(t.Context(), f, p); err != nil {
			t.Fatal(err)
		}
	}
	for range either(1, 11) {
		for i, p := range built {
			sample, err := scenarios[0].Round(t.Context(), env, p)
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			if sample[results.Errors.Key] > 0 {
				t.Errorf("%s: got %v errors", p.Name, sample[results.Errors.Key])
			}
			values[i] = append(values[i], sample[metric.Key])
		}
	}
	return stats.Summarise(values[0]), stats.Summarise(values[1])
}
