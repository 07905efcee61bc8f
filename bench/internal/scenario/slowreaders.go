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

var slowReaders = Scenario{
	Name: "slow-readers", Title: "1,000 clients that ask and never read",
	About: "Ordinary clients ask for plain text 2,000 times a second, a fiftieth of the server's capacity. Then slow readers come: each " +
		"asks for 50 times 108 KB in one write and reads nothing. The ordinary clients' p99, from the moment each request was " +
		"due and with those given up after two seconds, is that of the eight seconds that begin with them; beside it is " +
		"the one they had before. Unserved is how many of their 20,000 requests were refused or given up, cut off how many of " +
		"the slow readers the server had cut off after the eight seconds. Then they leave; the last memory is that of 30 seconds later.",
	Metrics: []results.Metric{
		results.PeakRSS, results.QuietP99, results.P50, results.P99, results.P99Ratio, results.CutOff, results.StartRSS, results.RSSAfter,
		results.Unserved,
	},
	Needs:       []string{"plaintext", "users"},
	MaxRounds:   1,
	ServersOnly: true,
	Commands: func(e *Env) []string {
		return []string{
			proc.Command{Path: "compare", Args: openLoopArgs(ordinary(exampleAddr, slowTime)), Cores: e.Cores.Load}.String(),
			proc.Command{Path: "compare", Args: holdArgs(stalled(e, exampleAddr)), Cores: e.Cores.Load}.String(),
		}
	},
	Round: slowReadersRound,
}

const (
	quietTime = 2 * time.Second
	slowTime  = 8 * time.Second
	// beforeSlow is the time for which the ordinary clients run before the slow readers connect.
	beforeSlow = time.Second
	// afterLeaving is the time that a server has to release memory after the slow readers have disconnected.
	afterLeaving = 30 * time.Second
)

// ordinary returns the load of the ordinary clients, an open loop with a constant rate. A closed loop would send fewer requests
// while the server stalls, and would measure less of the stall.
func ordinary(addr string, d time.Duration) load.OpenLoop {
	return load.OpenLoop{
		Addr: addr, Path: "/plaintext", Rate: 2000, Duration: d, Connections: 32, Patience: 2 * time.Second, LeadIn: beforeSlow,
	}
}

func stalled(e *Env, addr string) load.Hold {
	h := load.Hold{Addr: addr, Path: "/api/v1/users", Connections: 1000, Unread: 50}
	if e.Short {
		h.Connections = 200
	}
	return h
}

func slowReadersRound(ctx context.Context, e *Env, p peer.Built) (sample results.Sample, err error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if err := e.warm(ctx, bystanders, s, e.Cores.Load); err != nil {
		return nil, err
	}
	base, err := s.RSS()
	if err != nil {
		return nil, err
	}
	quiet, err := e.openLoop(ctx, ordinary(s.addr, quietTime))
	if err != nil {
		return nil, err
	}
	underLoad, cut, err := runWithSlowReaders(ctx, e, s)
	if err != nil {
		return nil, err
	}
	sample = results.Sample{
		results.StartRSS.Key: megabytes(base),
		results.QuietP99.Key: milliseconds(quiet.All.P99),
		results.P50.Key:      milliseconds(underLoad.All.P50),
		results.P99.Key:      milliseconds(underLoad.All.P99),
		results.P99Ratio.Key: underLoad.All.P99.Seconds() / quiet.All.P99.Seconds(),
		results.CutOff.Key:   float64(cut),
		results.Unserved.Key: float64(quiet.Failed() + underLoad.Failed()),
	}
	e.later(ctx, afterLeaving, func() error {
		defer s.Stop()
		rss, err := s.RSS()
		if err != nil {
			return fmt.Errorf("slow-readers, %s, after the slow readers: %w", p.Name, err)
		}
		peak, err := s.PeakRSS() // measured last, because the server may still answer requests of slow readers after they have disconnected
		if err != nil {
			return fmt.Errorf("slow-readers, %s, after the slow readers: %w", p.Name, err)
		}
		sample[results.RSSAfter.Key], sample[results.PeakRSS.Key] = megabytes(rss), megabytes(peak)
		return nil
	})
	return sample, nil
}

// runWithSlowReaders runs the ordinary clients. During this time the slow readers connect. At the end of this time they
// disconnect.
func runWithSlowReaders(ctx context.Context, e *Env, s *server) (underLoad load.OpenLoopResult, cut int, err error) {
	type outcome struct {
		load.OpenLoopResult
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := e.openLoop(ctx, ordinary(s.addr, slowTime))
		done <- outcome{result, err}
	}()
	if err := pause(ctx, beforeSlow); err != nil {
		return underLoad, 0, err
	}
	slow, err := e.hold(ctx, stalled(e, s.addr))
	run := <-done
	if err != nil {
		return underLoad, 0, err
	}
	defer slow.Stop()
	if run.err != nil {
		return underLoad, 0, run.err
	}
	cut, err = slow.cutOff()
	return run.OpenLoopResult, cut, err
}
