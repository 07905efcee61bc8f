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

// bystanders are the well-behaved clients of both scenarios here.
var bystanders = load.Wrk{Threads: 1, Connections: 32, Path: "/plaintext"}

// sleeping clients keep 400 actions waiting at any time.
var sleeping = load.Wrk{Threads: 1, Connections: 400, Path: "/sleep?ms=10"}

var sleepers = Scenario{
	Name: "sleepers", Title: "400 connections in waiting actions beside 32 on plain text",
	About: "Actions that wait 10 ms, as for a database, beside others that do not. On two cores that server and load share, " +
		"a framework that runs actions on its event loop would stand still. Requests/s and latency are the bystanders'.",
	Metrics: []results.Metric{results.Throughput, results.P50, results.P99, results.P999, results.Sleepers, results.PeakRSS, results.Errors},
	Needs:   []string{"plaintext", "sleep"},
	Commands: func(e *Env) []string {
		return []string{
			sleeping.Command(e.Folders.Bench, exampleAddr, e.Place.Both, e.Duration+sleeperMargin).String(),
			bystanders.Command(e.Folders.Bench, exampleAddr, e.Place.Both, e.Duration).String(),
		}
	},
	Round: sleepersRound,
}

// sleeperMargin keeps the sleepers there for all of the bystanders' time.
const sleeperMargin = time.Second

func sleepersRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Place.Both)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	asleep, err := proc.Start(ctx, sleeping.Command(e.Folders.Bench, s.addr, e.Place.Both, e.Duration+sleeperMargin))
	if err != nil {
		return nil, err
	}
	defer asleep.Stop()
	if err := e.warm(ctx, bystanders, s, e.Place.Both); err != nil {
		return nil, err
	}
	beside, err := e.wrk(ctx, bystanders, s, e.Place.Both, e.Duration)
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

var slowReaders = Scenario{
	Name: "slow-readers", Title: "1,000 clients that ask and never read",
	About: "Each asks for 50 times 108 KB at once and reads nothing. At first a server is busy filling the kernel's buffers, " +
		"for as long as the column says; then 32 other connections ask for plain text. Their p99 stands beside the one they had " +
		"before the crowd came. Cut off is how many of the 1,000 the server had sent away by the end, and the last column " +
		"its memory two seconds after all of them left.",
	Metrics: []results.Metric{
		results.PeakRSS, results.QuietP99, results.P99, results.Throughput, results.Busy, results.CutOff, results.RSSAfter, results.Errors,
	},
	Needs:     []string{"plaintext", "users"},
	MaxRounds: 1,
	Commands: func(e *Env) []string {
		return []string{
			proc.Command{Path: "compare", Args: holdArgs(stalled(e, exampleAddr)), Cores: e.Place.Load}.String(),
			bystanders.Command(e.Folders.Bench, exampleAddr, e.Place.Load, e.Duration).String(),
		}
	},
	Round: slowReadersRound,
}

func stalled(e *Env, addr string) load.Hold {
	h := load.Hold{Addr: addr, Path: "/api/v1/users", Connections: 1000, Unread: 50}
	if e.Short {
		h.Connections = 200
	}
	return h
}

const (
	restWindow = 200 * time.Millisecond
	restAtMost = restWindow / 50 // of processor time in a window
	restInARow = 2               // one such window may be a server that waits for its core
	busyAtMost = 15 * time.Second
)

// untilRest waits until the server hardly uses its core any more, or for as long as one may be asked
// to, and returns how long that took.
func untilRest(ctx context.Context, s *server) (time.Duration, error) {
	start := time.Now()
	before, err := s.CPU()
	for resting := 0; err == nil && resting < restInARow && time.Since(start) < busyAtMost; {
		if err := pause(ctx, restWindow); err != nil {
			return 0, err
		}
		var now time.Duration
		now, err = s.CPU()
		if now-before < restAtMost {
			resting++
		} else {
			resting = 0
		}
		before = now
	}
	return time.Since(start), err
}

// afterLeaving is how long a server may take to give back memory before it is looked at.
const afterLeaving = 2 * time.Second

func slowReadersRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Place.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := e.warm(ctx, bystanders, s, e.Place.Load); err != nil {
		return nil, err
	}
	quiet, err := e.wrk(ctx, bystanders, s, e.Place.Load, e.Duration)
	if err != nil {
		return nil, err
	}
	crowd, err := e.hold(ctx, stalled(e, s.addr))
	if err != nil {
		return nil, err
	}
	defer crowd.Stop()
	busy, err := untilRest(ctx, s)
	if err != nil {
		return nil, err
	}
	beside, err := e.wrk(ctx, bystanders, s, e.Place.Load, e.Duration)
	if err != nil {
		return nil, err
	}
	cut, err := crowd.cutOff()
	if err != nil {
		return nil, err
	}
	crowd.Stop()
	if err := pause(ctx, afterLeaving); err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	rss, err := s.RSS()
	if err != nil {
		return nil, err
	}
	return results.Sample{
		results.PeakRSS.Key:    megabytes(peak),
		results.QuietP99.Key:   milliseconds(quiet.P99),
		results.P99.Key:        latencies(beside)[results.P99.Key],
		results.Throughput.Key: float64(beside.Requests) / beside.Duration.Seconds(),
		results.Busy.Key:       busy.Seconds(),
		results.CutOff.Key:     float64(cut),
		results.RSSAfter.Key:   megabytes(rss),
		results.Errors.Key:     float64(quiet.Errors() + beside.Errors()),
	}, nil
}
