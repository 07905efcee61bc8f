//go:build linux

package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

var overload = Scenario{
	Name: "overload", Title: "Twice as many requests as can be served",
	About: "First wrk finds the capacity of the server (64 connections on the 1,000 users), then an open loop asks for half of " +
		"that for two seconds, from which 4,000 clients are connected, and for twice that at a constant rate for 30 s, each " +
		"request's latency counted from the moment it was due, and given up after two seconds. Goodput is the rate of answers in time, over the capacity; the percentiles are those of the good answers, and " +
		"503 p99 is how long a refusal took. Busy is the share of its core: a server below 1 at its capacity was not asked for all it " +
		"can, and a generator near 1 was a limit itself.",
	Metrics: []results.Metric{
		results.Goodput, results.P50, results.P99, results.P999, results.Rejected, results.RejectedP99, results.Unanswered,
		results.Capacity, results.ServerBusy, results.LoadBusy, results.GeneratorLag, results.PeakRSS,
	},
	Needs:       []string{"users"},
	MaxRounds:   1,
	ServersOnly: true,
	Commands: func(e *Env) []string {
		open := overloadAt(e, exampleAddr, 1)
		args := openLoopArgs(open)
		for i, arg := range args {
			if arg == "-rate" {
				args[i+1] = "TWICE_THE_CAPACITY"
			}
		}
		return []string{
			capacity.Command(e.Folders.Bench, exampleAddr, e.Cores.Load, capacityTime).String(),
			proc.Command{Path: "compare", Args: args, Cores: e.Cores.Load}.String(),
		}
	},
	Round: overloadRound,
}

var capacity = load.Wrk{Threads: 1, Connections: 64, Path: "/api/v1/users"}

// capacityTime is the duration of the measurement of the capacity, on which the rates of all other
// measurements are based. It is long enough for a stable result.
const capacityTime = 2 * time.Second

func overloadAt(e *Env, addr string, rate float64) load.OpenLoop {
	open := load.OpenLoop{
		Addr: addr, Path: "/api/v1/users", Rate: rate,
		Duration: 30 * time.Second, Connections: 4000, Patience: 2 * time.Second,
		LeadIn: 2 * time.Second,
	}
	if e.Short {
		open.Duration = 2 * time.Second
	}
	return open
}

func overloadRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	can, cpu, err := e.measure(ctx, capacity, s, e.Cores.Load, capacityTime)
	if err != nil {
		return nil, err
	}
	if can.Requests == 0 {
		return nil, errors.New("it answered nothing while its capacity was measured")
	}
	capacityRate := float64(can.Requests) / can.Duration.Seconds()
	open := overloadAt(e, s.addr, 2*capacityRate)
	got, err := e.openLoop(ctx, open)
	if err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	seconds := open.Duration.Seconds()
	sample := results.Sample{
		results.Capacity.Key:     capacityRate,
		results.ServerBusy.Key:   cpu.Seconds() / can.Duration.Seconds(),
		results.LoadBusy.Key:     got.CPU.Seconds() / got.Took.Seconds(),
		results.Goodput.Key:      float64(got.Answered.Count) / seconds / capacityRate,
		results.Rejected.Key:     float64(got.Rejected.Count) / seconds,
		results.Unanswered.Key:   float64(got.Unanswered+got.Other) / seconds,
		results.PeakRSS.Key:      megabytes(peak),
		results.GeneratorLag.Key: milliseconds(got.Lag),
	}
	// If there are no responses or no refusals, they have no latencies.
	if got.Answered.Count > 0 {
		sample[results.P50.Key] = milliseconds(got.Answered.P50)
		sample[results.P99.Key] = milliseconds(got.Answered.P99)
		sample[results.P999.Key] = milliseconds(got.Answered.P999)
	}
	if got.Rejected.Count > 0 {
		sample[results.RejectedP99.Key] = milliseconds(got.Rejected.P99)
	}
	return sample, nil
}
