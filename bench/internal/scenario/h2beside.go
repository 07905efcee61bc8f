//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// h2Blocked measures streams whose actions wait.
var h2Blocked = Scenario{
	Name: "h2-blocked", Title: "10,000 blocked streams of HTTP/2",
	About: "100 connections with 100 streams each, in clear text, whose actions sleep for a minute: growth of the server's resident " +
		"memory over each. Ordinary clients ask for plain text 2,000 times a second on connections of their own, before and while they do.",
	Metrics:   []results.Metric{results.PerStream, results.Blocked, results.QuietP99, results.P99, results.P99Ratio, results.Unserved, results.PeakRSS},
	Needs:     []string{"plaintext", "sleep"},
	Peers:     peer.H2InClear[:2],
	MaxRounds: 3, WithoutWrk: true,
	Commands: func(e *Env) []string {
		return []string{
			proc.Command{Path: "compare", Args: h2HoldArgs(h2Sleeping(exampleAddr)), Cores: e.Cores.Load}.String(),
			proc.Command{Path: "compare", Args: openLoopArgs(ordinary(exampleAddr, h2Beside(e))), Cores: e.Cores.Load}.String(),
		}
	},
	Round: h2BlockedRound,
}

func h2Sleeping(addr string) load.H2Hold {
	return load.H2Hold{Addr: addr, Path: "/sleep?ms=60000", Connections: 100, Streams: 100}
}

// h2Beside returns the duration for which the ordinary clients are measured.
func h2Beside(e *Env) time.Duration { return max(e.Duration, 2*time.Second) }

func h2HoldArgs(h load.H2Hold) []string {
	return []string{
		"load", "h2hold", "-addr", h.Addr, "-path", h.Path,
		"-connections", strconv.Itoa(h.Connections), "-streams", strconv.Itoa(h.Streams),
	}
}

// startQuiet starts the peer. It also returns the results of ordinary clients while there is no other load.
func (e *Env) startQuiet(ctx context.Context, p peer.Built) (s *server, quiet load.OpenLoopResult, err error) {
	if s, err = e.start(ctx, p, e.Cores.Server); err != nil {
		return nil, quiet, err
	}
	if quiet, err = e.openLoop(ctx, ordinary(s.addr, h2Beside(e))); err != nil {
		s.Stop()
		return nil, quiet, err
	}
	return s, quiet, nil
}

func h2BlockedRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, quiet, err := e.startQuiet(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	hold := h2Sleeping(s.addr)
	var held *holder
	grown, err := s.grown(func() (err error) {
		if held, err = e.holdWith(ctx, h2HoldArgs(hold)); err != nil {
			return err
		}
		return e.rests(ctx, s) // on a busy machine it takes some time until all requests have begun
	})
	if held != nil {
		defer held.Stop()
	}
	if err != nil {
		return nil, err
	}
	beside, err := e.openLoop(ctx, ordinary(s.addr, h2Beside(e)))
	if err != nil {
		return nil, err
	}
	answered, err := held.cutOff()
	if err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	streams := hold.Connections * hold.Streams
	return results.Sample{
		results.PerStream.Key: float64(grown) / float64(streams),
		results.Blocked.Key:   float64(streams - answered),
		results.QuietP99.Key:  milliseconds(quiet.All.P99),
		results.P99.Key:       milliseconds(beside.All.P99),
		results.P99Ratio.Key:  beside.All.P99.Seconds() / quiet.All.P99.Seconds(),
		results.Unserved.Key:  float64(quiet.Failed() + beside.Failed()),
		results.PeakRSS.Key:   megabytes(peak),
	}, nil
}

// rests waits until the server is idle, but at most for restTime.
func (e *Env) rests(ctx context.Context, s *server) error {
	const look, little = 200 * time.Millisecond, 4 * time.Millisecond
	before, err := s.CPU()
	for range restTime / look {
		if err == nil {
			err = pause(ctx, look)
		}
		if err != nil {
			return err
		}
		var now time.Duration
		if now, err = s.CPU(); err == nil && now-before < little {
			return nil
		}
		before = now
	}
	return err
}

const restTime = 20 * time.Second

// h2Attacks measures ordinary clients during attacks that cost the server more work than the attackers.
var h2Attacks = Scenario{
	Name: "h2-attacks", Title: "Attacks over HTTP/2",
	About: "Four connections in clear text: 100,000 requests a second that are reset at once (rapid reset), or that the " +
		"client has the server reset (MadeYouReset); as many frames that serve no request; and a hundred streams on each whose " +
		"windows stay shut, or whose bodies do not arrive. A client that is cut off reconnects at once. Ordinary clients ask for plain text 2,000 times a second on " +
		"connections of their own, for each attack three times in turns undisturbed, while it is sent to a sink on the server's core, and beside it: the medians " +
		"of their p99, over those undisturbed. The floor is the effect of the sink on them. Growth is of resident memory, over all attacks.",
	Metrics:   h2AttackMetrics(),
	Needs:     []string{"plaintext", "sleep"},
	Peers:     peer.H2InClear[:2],
	MaxRounds: 2, WithoutWrk: true,
	Commands: func(e *Env) []string {
		commands := []string{
			proc.Command{Path: "compare", Args: openLoopArgs(h2Look(e, exampleAddr)), Cores: e.Cores.Load}.String(),
			proc.Command{Path: "compare", Args: sinkArgs("127.0.0.1:3001"), Cores: e.Cores.Server}.String(),
		}
		for _, kind := range load.H2AttackKinds {
			commands = append(commands, proc.Command{Path: "compare", Args: h2AttackArgs(h2AttackBy(e, kind, exampleAddr)), Cores: e.Cores.Load}.String())
		}
		return commands
	},
	Round: h2AttacksRound,
}

const (
	// h2Looks is the number of times that the ordinary clients are measured in each of the three situations.
	h2Looks = 3
	// h2LeadIn is the time for which the clients and the attack run before a measurement begins.
	h2LeadIn = 300 * time.Millisecond
)

// h2Look returns the load for one measurement. The measurements are short, so that a pause of the host affects only one of
// them and not the median.
func h2Look(e *Env, addr string) load.OpenLoop {
	o := ordinary(addr, max(e.Duration/2, 500*time.Millisecond))
	o.LeadIn = h2LeadIn
	return o
}

func sinkArgs(addr string) []string { return []string{"load", "sink", "-addr", addr} }

func h2AttackMetrics() []results.Metric {
	metrics := []results.Metric{results.WorstP99Ratio, results.WorstFloor, results.OverFloor, results.QuietP99}
	for _, kind := range load.H2AttackKinds {
		metrics = append(metrics, results.P99RatioOf(kind))
	}
	return append(metrics, results.Growth, results.Unserved)
}

func h2AttackBy(e *Env, kind, addr string) load.H2Attack {
	o := h2Look(e, addr)
	return load.H2Attack{Addr: addr, Kind: kind, Rate: 100_000, Connections: 4, Duration: o.Duration + o.LeadIn + time.Second/2}
}

func h2AttackArgs(a load.H2Attack) []string {
	return []string{
		"load", "h2attack", "-addr", a.Addr, "-kind", a.Kind, "-rate", strconv.Itoa(a.Rate),
		"-connections", strconv.Itoa(a.Connections), "-duration", a.Duration.String(),
	}
}

func h2AttacksRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, _, err := e.startQuiet(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	sink, sinkAddr, err := e.startSink(ctx)
	if err != nil {
		return nil, err
	}
	defer sink.Stop()
	before, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	sample := results.Sample{}
	var quiets []float64
	worst, floor, over, unserved := 0.0, 0.0, 0.0, int64(0)
	for _, kind := range load.H2AttackKinds {
		seen, err := e.besideAttack(ctx, s, kind, sinkAddr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		quiets = append(quiets, seen.quiet)
		sample[results.P99RatioOf(kind).Key] = seen.beside / seen.quiet
		worst, floor, over = max(worst, seen.beside/seen.quiet), max(floor, seen.sink/seen.quiet), max(over, seen.beside/seen.sink)
		unserved += seen.unserved
	}
	after, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	sample[results.WorstP99Ratio.Key] = worst
	sample[results.WorstFloor.Key] = floor
	sample[results.OverFloor.Key] = over
	sample[results.QuietP99.Key] = median(quiets)
	sample[results.Growth.Key] = megabytes(after - before)
	sample[results.Unserved.Key] = float64(unserved)
	return sample, nil
}

// startSink starts a sink on the server's cores.
func (e *Env) startSink(ctx context.Context) (sink *proc.Process, addr string, err error) {
	if addr, err = freeAddr(); err != nil {
		return nil, "", err
	}
	if sink, err = proc.Start(ctx, proc.Command{Path: e.Self, Args: sinkArgs(addr), Cores: e.Cores.Server}); err != nil {
		return nil, "", err
	}
	for range startTimeout / (10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return sink, addr, nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			break
		}
	}
	sink.Stop()
	return nil, "", fmt.Errorf("the sink does not listen%s", quote(sink.Output()))
}

// h2Seen has the results of ordinary clients in three situations: medians of their p99, in ms.
type h2Seen struct {
	quiet, sink, beside float64
	unserved            int64
}

// besideAttack returns the results of ordinary clients in three situations: without an attack, during an attack on a sink, and
// during an attack on their server.
func (e *Env) besideAttack(ctx context.Context, s *server, kind, sink string) (seen h2Seen, err error) {
	var quiet, floor, beside []float64
	look := func(to *[]float64) error {
		result, err := e.openLoop(ctx, h2Look(e, s.addr))
		if err != nil {
			return err
		}
		*to = append(*to, milliseconds(result.All.P99))
		seen.unserved += result.Failed()
		return nil
	}
	for range h2Looks {
		err = errors.Join(
			look(&quiet),
			e.attacked(ctx, kind, sink, func() error { return look(&floor) }),
			e.attacked(ctx, kind, s.addr, func() error { return look(&beside) }),
		)
		if err == nil {
			err = e.rests(ctx, s)
		}
		if err != nil {
			return seen, err
		}
	}
	seen.quiet, seen.sink, seen.beside = median(quiet), median(floor), median(beside)
	return seen, nil
}

// attacked calls do while an attack runs.
func (e *Env) attacked(ctx context.Context, kind, addr string, do func() error) error {
	attack, err := proc.Start(ctx, proc.Command{Path: e.Self, Args: h2AttackArgs(h2AttackBy(e, kind, addr)), Cores: e.Cores.Load})
	if err != nil {
		return err
	}
	defer attack.Stop()
	if err := do(); err != nil {
		return err
	}
	if err := attack.Wait(); err != nil {
		return err
	}
	if !strings.Contains(attack.Output(), "steps") {
		return errors.New("the attack has not said what it did")
	}
	return nil
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	n := len(of)
	return (of[(n-1)/2] + of[n/2]) / 2
}
