//go:build linux

// Package runner runs a comparison: it builds the peers, checks that their responses are the same, and runs the rounds of all
// scenarios in turn.
package runner

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// Options are the options of a run.
type Options struct {
	Scenarios  []scenario.Scenario
	Peers      []peer.Peer
	Rounds     int
	Benchmarks int    // number of repetitions of each Go benchmark; 0 for no Go benchmarks
	Text       string // the options as they were written on the command line
}

// A Watcher receives the progress of a run.
type Watcher interface {
	Note(format string, args ...any)               // a remark for the reader
	Step(done, all int, what string)               // the next step begins
	Finished(s results.Scenario)                   // a scenario is complete
	Benchmarked(benchmarks []results.Benchmark)    // the Go benchmarks are complete
	Failed(scenario, peer string, err error)       // the peer is removed from the scenario
	Skipped(peer, why string)                      // the peer is removed from the run
	Differs(peer string, checks map[string]string) // responses of the peer differ from those of the reference service
}

// Run measures all scenarios, round by round: the first round of each scenario, with its servers in turn, then the second round
// of each scenario, and so on. In this way the rounds of a scenario are distributed over the entire run. If the machine becomes
// slower or faster during the run, this affects all servers alike, and increases the spread of all scenarios instead of
// changing one of them.
//
// If ctx ends, Run returns the error of ctx. No process that Run has started remains.
func Run(ctx context.Context, env *scenario.Env, o Options, watch Watcher) (*results.Run, error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		o.Scenarios = without(o.Scenarios, func(s scenario.Scenario) bool { return !s.WithoutWrk }, "wrk", "wrk", watch)
	}
	if _, err := exec.LookPath("h2load"); err != nil {
		o.Scenarios = without(o.Scenarios, func(s scenario.Scenario) bool { return s.WithH2Load }, "h2load", "nghttp2-client", watch)
	}
	defer env.Close()
	if err := env.StartBackend(ctx, o.Peers); scenario.WithoutDatabase(err) {
		o.Scenarios = without(o.Scenarios, func(s scenario.Scenario) bool { return s.Database }, "PostgreSQL", "postgresql", watch)
	} else if err != nil {
		return nil, err
	}
	run := describe(ctx, env, o)
	began := now()
	members, err := prepare(ctx, env, o, run, watch)
	if err != nil {
		return nil, err
	}
	defer env.Settle(ctx) // the servers must also end after an interrupt
	all := newMeasurements(o, members)
	benchmarks := newBenchmarks(ctx, env, o, watch)
	for round := range max(o.Rounds, o.Benchmarks) {
		if err := all.runRound(ctx, env, round, watch); err != nil {
			return nil, err
		}
		benchmarks.runRound(ctx, round, watch)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	run.Scenarios, run.Benchmarks = all.measured(), benchmarks.results
	if len(run.Scenarios)+len(run.Benchmarks) == 0 {
		return nil, errors.New("nothing could be measured")
	}
	run.Others = began.others(now(), run.Machine.Cores)
	run.Took = time.Since(run.Started).Round(time.Second).String()
	return run, nil
}

// without removes the scenarios that need a tool, and reports them to watch.
func without(scenarios []scenario.Scenario, needs func(scenario.Scenario) bool, tool, from string, watch Watcher) []scenario.Scenario {
	left := slices.DeleteFunc(slices.Clone(scenarios), needs)
	if out := len(scenarios) - len(left); out > 0 {
		watch.Note("%s is not installed (Debian: apt-get install %s): %d scenarios are left out", tool, from, out)
	}
	return left
}
