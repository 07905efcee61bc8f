//go:build linux

package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// besides lists the loads that run at the same time as requests for plain text. A load with 0 connections does
// nothing.
var besides = []struct {
	name string
	load load.Wrk
}{
	{"db", load.Wrk{Threads: 1, Connections: 64, Path: "/db"}},
	{"slow", load.Wrk{Threads: 1, Connections: 64, Path: "/slow"}},
	{"compute", load.Wrk{Threads: 1, Connections: 8, Path: "/compute"}},
	{"nothing", load.Wrk{}},
}

var mixed = Scenario{
	Name: "mixed", Title: "Plain text beside waiting and computing actions",
	About: "A thousand requests a second for /plaintext, by an open loop, beside clients that ask as fast as they are answered: 64 for one query " +
		"(db), 64 for a query that takes 20 ms (slow), 8 for an action that computes for 200 µs (compute), or none (nothing). Each has a fresh " +
		"process. The database and all clients share the load's core, whose queue is part of every figure.",
	Metrics: mixedMetrics(), Needs: []string{"plaintext", "db", "slow", "compute"}, MaxRounds: 4, Database: true,
	Commands: func(e *Env) []string {
		commands := []string{proc.Command{Path: "compare", Args: openLoopArgs(bystander(e, exampleAddr)), Cores: e.Cores.Load}.String()}
		for _, beside := range besides {
			if beside.load.Connections > 0 {
				commands = append(commands, beside.load.Command(e.Folders.Bench, exampleAddr, e.Cores.Load, time.Minute).String())
			}
		}
		return commands
	},
	Round: mixedRound,
}

func mixedMetrics() []results.Metric {
	var metrics []results.Metric
	for _, beside := range besides {
		metrics = append(metrics, results.P99Beside(beside.name), results.P50Beside(beside.name))
	}
	return append(metrics, results.Errors, results.GeneratorLag)
}

// bystander returns the load of the client that requests plain text.
func bystander(e *Env, addr string) load.OpenLoop {
	return load.OpenLoop{
		Addr: addr, Path: "/plaintext", Rate: 1000, Duration: max(e.Duration, time.Second), Connections: 100, Patience: 2 * time.Second,
	}
}

func mixedRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	sample := results.Sample{results.Errors.Key: 0, results.GeneratorLag.Key: 0}
	for _, beside := range besides {
		got, err := plaintextBeside(ctx, e, p, beside.load)
		if err != nil {
			return nil, fmt.Errorf("beside %s: %w", beside.name, err)
		}
		sample[results.P50Beside(beside.name).Key] = milliseconds(got.All.P50)
		sample[results.P99Beside(beside.name).Key] = milliseconds(got.All.P99)
		sample[results.Errors.Key] += float64(got.Failed())
		sample[results.GeneratorLag.Key] = max(sample[results.GeneratorLag.Key], milliseconds(got.Lag))
	}
	return sample, nil
}

// plaintextBeside starts a server, and requests plain text from it while w runs.
func plaintextBeside(ctx context.Context, e *Env, p peer.Built, w load.Wrk) (load.OpenLoopResult, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return load.OpenLoopResult{}, err
	}
	defer s.Stop()
	if w.Connections > 0 {
		beside, err := proc.Start(ctx, w.Command(e.Folders.Bench, s.addr, e.Cores.Load, time.Minute))
		if err != nil {
			return load.OpenLoopResult{}, err
		}
		defer beside.Stop()
		if err := pause(ctx, warmUp); err != nil {
			return load.OpenLoopResult{}, err
		}
	}
	return e.openLoop(ctx, bystander(e, s.addr))
}
