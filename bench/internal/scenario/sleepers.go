//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// bystanders are clients in a closed loop whose requests do not wait.
var bystanders = load.Wrk{Threads: 1, Connections: 32, Path: "/plaintext"}

// sleeping are clients that keep 400 actions waiting at all times.
var sleeping = load.Wrk{Threads: 1, Connections: 400, Path: "/sleep?ms=10"}

var sleepers = Scenario{
	Name: "sleepers", Title: "400 connections in waiting actions beside 32 on plain text",
	About: "Actions that wait 10 ms, as for a database, beside others that do not. On two cores that server and load share, " +
		"a framework that runs actions on its event loop would stand still. Requests/s and latency are the bystanders'.",
	Metrics:   []results.Metric{results.Throughput, results.P50, results.P99, results.P999, results.Sleepers, results.PeakRSS, results.Errors},
	Needs:     []string{"plaintext", "sleep"},
	MaxRounds: 4,
	Commands: func(e *Env) []string {
		return []string{
			sleeping.Command(e.Folders.Bench, exampleAddr, e.Cores.Both, besideSleepers(e)+sleeperMargin).String(),
			bystanders.Command(e.Folders.Bench, exampleAddr, e.Cores.Both, besideSleepers(e)).String(),
		}
	},
	Round: sleepersRound,
}

// sleeperMargin is added to the time of the sleeping clients, so that they run for the entire time of the
// bystanders, including the warm-up.
const sleeperMargin = 500 * time.Millisecond

// besideSleepers returns the duration of the measurement, which is at least a hundred times as long as a wait.
func besideSleepers(e *Env) time.Duration { return max(e.Duration, time.Second) }

func sleepersRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Both)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	asleep, err := proc.Start(ctx, sleeping.Command(e.Folders.Bench, s.addr, e.Cores.Both, besideSleepers(e)+sleeperMargin))
	if err != nil {
		return nil, err
	}
	defer asleep.Stop()
	if err := e.warm(ctx, bystanders, s, e.Cores.Both); err != nil {
		return nil, err
	}
	beside, err := e.wrk(ctx, bystanders, s, e.Cores.Both, besideSleepers(e))
	if err != nil {
		return nil, err
	}
	if err := asleep.Wait(); err != nil {
		return nil, err
	}
	slept, err := load.ParseWrk(asleep.Output())
	if err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	sample := latencies(beside)
	sample[results.Throughput.Key] = float64(beside.Requests) / beside.Duration.Seconds()
	sample[results.Sleepers.Key] = float64(slept.Requests) / slept.Duration.Seconds()
	sample[results.PeakRSS.Key] = megabytes(peak)
	sample[results.Errors.Key] = float64(beside.Errors() + slept.Errors())
	return sample, nil
}
