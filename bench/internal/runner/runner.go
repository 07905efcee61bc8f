//go:build linux

// Package runner carries out a comparison: it builds the peers, checks that they give the same
// answers, and takes every scenario's rounds in turn.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/gobench"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// Options of a run.
type Options struct {
	Scenarios  []scenario.Scenario
	Peers      []peer.Peer
	Rounds     int
	Benchmarks int    // repetitions of each Go benchmark; 0: none
	Text       string // the options as they were typed
}

// Watcher is told how far a run has come.
type Watcher interface {
	Note(format string, args ...any)               // something the reader should know
	Step(done, all int, what string)               // what begins now
	Finished(s results.Scenario)                   // a scenario is complete
	Benchmarked(benchmarks []results.Benchmark)    // so are the Go benchmarks
	Failed(scenario, peer string, err error)       // a peer is out of a scenario
	Skipped(peer, why string)                      // a peer is out of the run
	Differs(peer string, checks map[string]string) // a peer's answers are not the reference's
}

// Run measures everything. If ctx ends it returns what ctx says; nothing it started is left.
func Run(ctx context.Context, env *scenario.Env, o Options, watch Watcher) (*results.Run, error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		o.Scenarios = withoutWrk(o.Scenarios, watch)
	}
	run := describe(ctx, env, o)
	began := now()
	crew, err := muster(ctx, env, o, run, watch)
	if err != nil {
		return nil, err
	}
	defer env.Settle(ctx) // after an interrupt: its servers are to be gone too
	plan := newPlan(o, crew)
	for _, s := range o.Scenarios {
		measured, err := measure(ctx, env, o, s, crew, plan, watch)
		if err != nil {
			return nil, err
		}
		if err := env.Settle(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			watch.Note("%v", err)
		}
		if len(measured.Rows) > 0 {
			run.Scenarios = append(run.Scenarios, measured)
			watch.Finished(measured)
		}
	}
	if o.Benchmarks > 0 {
		watch.Step(plan.done, plan.all, "Go benchmarks")
		run.Benchmarks, err = gobench.Run(ctx, env.Folders.Bench, o.Benchmarks, env.Short)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		watch.Benchmarked(run.Benchmarks)
		if err != nil {
			watch.Note("%v", err)
		}
	}
	if len(run.Scenarios)+len(run.Benchmarks) == 0 {
		return nil, errors.New("nothing could be measured")
	}
	run.Others = began.others(now(), run.Machine.Cores)
	run.Took = time.Since(run.Started).Round(time.Second).String()
	return run, nil
}

// withoutWrk leaves what can be measured without it.
func withoutWrk(scenarios []scenario.Scenario, watch Watcher) []scenario.Scenario {
	var left []scenario.Scenario
	for _, s := range scenarios {
		if s.WithoutWrk {
			left = append(left, s)
		}
	}
	if out := len(scenarios) - len(left); out > 0 {
		watch.Note("wrk is not installed (Debian: apt-get install wrk): %d scenarios are left out", out)
	}
	return left
}

// plan counts rounds for the progress.
type plan struct{ done, all int }

func newPlan(o Options, crew []member) *plan {
	p := &plan{}
	for _, s := range o.Scenarios {
		for _, m := range crew {
			if s.Takes(m.Peer, m.failed) {
				p.all += roundsOf(s, o)
			}
		}
	}
	return p
}

func roundsOf(s scenario.Scenario, o Options) int {
	if s.MaxRounds > 0 {
		return min(s.MaxRounds, o.Rounds)
	}
	return o.Rounds
}

// measure takes the rounds in turn: each peer's first, then each one's second. What drifts on the
// machine meanwhile hits all of them alike.
func measure(ctx context.Context, env *scenario.Env, o Options, s scenario.Scenario, crew []member, plan *plan, watch Watcher) (results.Scenario, error) {
	measured := results.Scenario{
		Name: s.Name, Title: s.Title, About: s.About, Commands: s.Commands(env), Metrics: s.MetricKeys(),
	}
	crew = slices.DeleteFunc(slices.Clone(crew), func(m member) bool { return !s.Takes(m.Peer, m.failed) })
	for _, m := range crew {
		measured.Rows = append(measured.Rows, results.Row{Peer: m.Name})
	}
	rounds := roundsOf(s, o)
	for round := range rounds {
		for i, m := range crew {
			row := &measured.Rows[i]
			plan.done++
			if row.Failed != "" {
				continue
			}
			watch.Step(plan.done, plan.all, fmt.Sprintf("%s, round %d of %d: %s", s.Name, round+1, rounds, m.Name))
			sample, err := s.Round(ctx, env, m.Built)
			if ctx.Err() != nil {
				return measured, ctx.Err()
			}
			if err != nil {
				row.Failed = err.Error()
				watch.Failed(s.Name, m.Name, err)
				continue
			}
			row.Rounds = append(row.Rounds, sample)
		}
	}
	return measured, nil
}
