//go:build linux

package scenario

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// waitLengths are the lengths of the waits, in microseconds.
var waitLengths = []int{0, 50, 100, 200, 500, 1_000, 10_000}

var waits = Scenario{
	Name: "waits", Title: "CPU and p50 of a request by the length of its wait",
	About: "An action asks an upstream server, which answers after the time on the axis, and waits; at 0 it does not ask. 64 connections, and as many " +
		"to the upstream server, which runs on the load's core. Each length has a fresh process. A server that runs actions on its event loop must " +
		"notice that they wait, however briefly: otherwise requests wait for each other.",
	Metrics: waitMetrics(), Needs: []string{"wait"}, MaxRounds: 4,
	Commands: func(e *Env) []string {
		return []string{waitLoad(50).Command(e.Folders.Bench, exampleAddr, e.Cores.Load, e.Duration).String()}
	},
	Round: waitsRound,
}

func waitLoad(us int) load.Wrk {
	return load.Wrk{Threads: 1, Connections: 64, Path: "/wait?us=" + strconv.Itoa(us)}
}

func waitMetrics() []results.Metric {
	var cpu, p50 []results.Metric
	for _, us := range waitLengths {
		cpu, p50 = append(cpu, results.CPUAtWait(us)), append(p50, results.P50AtWait(us))
	}
	return append(append(cpu, p50...), results.Errors)
}

func waitsRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	sample := results.Sample{results.Errors.Key: 0}
	for _, us := range waitLengths {
		if err := waitOf(ctx, e, p, us, sample); err != nil {
			return nil, fmt.Errorf("wait of %d µs: %w", us, err)
		}
	}
	return sample, nil
}

func waitOf(ctx context.Context, e *Env, p peer.Built, us int, sample results.Sample) error {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	got, cpu, err := e.measure(ctx, waitLoad(us), s, e.Cores.Load, e.Duration)
	if err != nil {
		return err
	}
	sample[results.CPUAtWait(us).Key] = perRequest(cpu, got.Requests)
	sample[results.P50AtWait(us).Key] = latencies(got)[results.P50.Key]
	sample[results.Errors.Key] += float64(got.Errors())
	return nil
}
