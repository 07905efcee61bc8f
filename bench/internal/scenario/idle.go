//go:build linux

package scenario

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// settle returns the time that a server is left alone before its memory or its idle CPU time is measured.
func settle(e *Env) time.Duration {
	if e.Short {
		return 300 * time.Millisecond
	}
	return time.Second
}

var warming = load.Wrk{Threads: 1, Connections: 64, Path: "/plaintext"}

var idleMemory = Scenario{
	Name: "idle-memory", Title: "Memory of idle connections",
	About: "15,000 connections (fewer where the limit of open files says so) that asked once and stay open: growth of the " +
		"server's resident memory over each.",
	Metrics:   []results.Metric{results.PerConn, results.Connections, results.PeakRSS},
	Needs:     []string{"plaintext"},
	MaxRounds: 1,
	InShort:   true,
	Commands: func(e *Env) []string {
		return []string{proc.Command{Path: "compare", Args: holdArgs(idleClients(e, exampleAddr)), Cores: e.Cores.Load}.String()}
	},
	Round: idleMemoryRound,
}

// spareFiles is the number of files that a process needs in addition to the connections that it holds open.
const spareFiles = 500

func idleClients(e *Env, addr string) load.Hold {
	return load.Hold{Addr: addr, Path: "/plaintext", Connections: maxHeld(e, 15_000)}
}

// maxHeld returns n, or the number of connections that can be held open if that is smaller. The number is limited
// by the open files of a process, and in a short run.
func maxHeld(e *Env, n int) int {
	if e.Short {
		n = min(n, 2_000)
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Max < 1<<31 {
		n = min(n, max(int(limit.Max)-spareFiles, 100))
	}
	return n
}

func idleMemoryRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	return holdRound(ctx, e, p, idleClients)
}

func holdRound(ctx context.Context, e *Env, p peer.Built, clients func(*Env, string) load.Hold) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := e.warm(ctx, warming, s, e.Cores.Load); err != nil {
		return nil, err
	}
	if err := pause(ctx, settle(e)); err != nil {
		return nil, err
	}
	hold := clients(e, s.addr)
	var held *holder
	grown, err := s.grown(func() (err error) {
		if held, err = e.hold(ctx, hold); err != nil {
			return err
		}
		return pause(ctx, settle(e))
	})
	if held != nil {
		defer held.Stop()
	}
	if err != nil {
		return nil, err
	}
	cut, err := held.cutOff()
	if err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	return results.Sample{
		results.PerConn.Key:     float64(grown) / float64(hold.Connections),
		results.Connections.Key: float64(hold.Connections - cut),
		results.PeakRSS.Key:     megabytes(peak),
	}, nil
}

var idleCPU = Scenario{
	Name: "idle-cpu", Title: "Processor time of an idle server",
	About:       "1,000 open connections on which nothing happens.",
	Metrics:     []results.Metric{results.IdleCPU},
	WithoutWrk:  true,
	Needs:       []string{"plaintext"},
	MaxRounds:   1,
	ServersOnly: true,
	Commands: func(e *Env) []string {
		return []string{proc.Command{Path: "compare", Args: holdArgs(resting(exampleAddr)), Cores: e.Cores.Load}.String()}
	},
	Round: idleCPURound,
}

func resting(addr string) load.Hold {
	return load.Hold{Addr: addr, Path: "/plaintext", Connections: 1000}
}

func idleCPURound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	held, err := e.hold(ctx, resting(s.addr))
	if err != nil {
		return nil, err
	}
	defer held.Stop()
	if err := pause(ctx, settle(e)); err != nil {
		return nil, err
	}
	window := 5 * time.Second
	if e.Short {
		window = 2 * time.Second
	}
	cpu, err := s.spent(func() error { return pause(ctx, window) })
	if err != nil {
		return nil, err
	}
	return results.Sample{results.IdleCPU.Key: milliseconds(cpu) * 10 / window.Seconds()}, nil
}

var footprint = Scenario{
	Name: "footprint", Title: "Start-up and size",
	About: "From exec to the first answer on one core, median of ten starts a round; the program's size, built as its " +
		"documentation says; and its memory at that first answer.",
	Metrics:    []results.Metric{results.StartUp, results.BinarySize, results.StartRSS},
	WithoutWrk: true,
	Needs:      []string{"plaintext"},
	InShort:    true,
	Commands:   func(*Env) []string { return nil },
	Round:      footprintRound,
}

const startsPerRound = 10

func footprintRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	var took, rss []float64
	for range startsPerRound {
		start := time.Now()
		s, err := e.start(ctx, p, e.Cores.Server)
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(start)))
		resident, err := s.RSS()
		s.Stop()
		if err != nil {
			return nil, err
		}
		rss = append(rss, megabytes(resident))
	}
	size, err := p.Size()
	if err != nil {
		return nil, err
	}
	return results.Sample{
		results.StartUp.Key:    stats.Summarise(took).Median,
		results.StartRSS.Key:   slices.Max(rss),
		results.BinarySize.Key: megabytes(size),
	}, nil
}
