//go:build linux

package runner

import (
	"context"
	"fmt"

	"github.com/dunlinhttp/dunlin/bench/internal/gobench"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// measurements has all scenarios of a run.
type measurements struct {
	scenarios []*measurement
	done, all int // numbers of rounds; a round measures one server
}

// A measurement is a scenario and its results up to now.
type measurement struct {
	scenario.Scenario
	rounds  int
	members []member // in the order of result.Rows
	result  results.Scenario
}

func newMeasurements(o Options, members []member) *measurements {
	all := &measurements{}
	for _, s := range o.Scenarios {
		m := &measurement{Scenario: s, rounds: roundsOf(s, o)}
		for _, peer := range members {
			if s.Takes(peer.Peer, peer.failed) {
				m.members = append(m.members, peer)
				m.result.Rows = append(m.result.Rows, results.Row{Peer: peer.Name})
				all.all += m.rounds
			}
		}
		if len(m.members) > 0 {
			all.scenarios = append(all.scenarios, m)
		}
	}
	return all
}

func roundsOf(s scenario.Scenario, o Options) int {
	if s.MaxRounds > 0 {
		return min(s.MaxRounds, o.Rounds)
	}
	return o.Rounds
}

// runRound runs one round of every scenario that has rounds left.
func (all *measurements) runRound(ctx context.Context, env *scenario.Env, round int, watch Watcher) error {
	for _, m := range all.scenarios {
		if round >= m.rounds {
			continue
		}
		for i := range m.members {
			all.done++
			m.takeFrom(ctx, env, i, round, func(text string) { watch.Step(all.done, all.all, text) }, watch)
		}
		err := env.Settle(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			watch.Note("%v", err)
		}
		if round == m.rounds-1 {
			m.describe(env)
			for i := range m.result.Rows {
				if s, some := env.Recorded(m.Name, m.result.Rows[i].Peer); some {
					m.result.Rows[i].Series = &s
				}
			}
			watch.Finished(m.result)
		}
	}
	return nil
}

// takeFrom runs one round of one server, unless the server has failed in this scenario before.
func (m *measurement) takeFrom(ctx context.Context, env *scenario.Env, i, round int, step func(string), watch Watcher) {
	peer, row := m.members[i], &m.result.Rows[i]
	if row.Failed != "" || ctx.Err() != nil {
		return
	}
	step(fmt.Sprintf("%s, round %d of %d: %s", m.Name, round+1, m.rounds, peer.Name))
	sample, err := m.Round(ctx, env, peer.Built)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		row.Failed = err.Error()
		watch.Failed(m.Name, peer.Name, err)
	default:
		row.Rounds = append(row.Rounds, sample)
	}
}

func (m *measurement) describe(env *scenario.Env) {
	m.result.Name, m.result.Title, m.result.About = m.Name, m.Title, m.About
	m.result.Commands, m.result.Metrics = m.Commands(env), m.MetricKeys()
}

// measured returns the results, in the order of the scenarios.
func (all *measurements) measured() []results.Scenario {
	var measured []results.Scenario
	for _, m := range all.scenarios {
		measured = append(measured, m.result)
	}
	return measured
}

// benchmarks has the Go benchmarks of a run. Each round runs one repetition of them.
type benchmarks struct {
	suite   *gobench.Suite
	count   int
	short   bool
	results []results.Benchmark
}

func newBenchmarks(ctx context.Context, env *scenario.Env, o Options, watch Watcher) *benchmarks {
	b := &benchmarks{count: o.Benchmarks, short: env.Short}
	if b.count == 0 {
		return b
	}
	watch.Step(0, 1, "build the Go benchmarks")
	suite, err := gobench.Build(ctx, env.Folders.Bench, env.Folders.Build)
	if err != nil && ctx.Err() == nil {
		watch.Note("%v", err)
	}
	b.suite = suite
	return b
}

func (b *benchmarks) runRound(ctx context.Context, round int, watch Watcher) {
	if round >= b.count {
		return
	}
	watch.Step(round+1, b.count, "Go benchmarks")
	found, err := b.suite.Run(ctx, b.short)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		watch.Note("%v", err)
	}
	b.results = gobench.Gather(b.results, found)
	if round == b.count-1 {
		watch.Benchmarked(b.results)
	}
}
