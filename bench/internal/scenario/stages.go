//go:build linux

package scenario

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

var stagesLoad = load.Wrk{Threads: 2, Connections: 1000, Path: "/api/v1/users"}

var stages = Scenario{
	Name: "stages", Title: "The stages of a post: array, slice, semaphore",
	About: "A post went from 897 MB to 87 MB with the 1,000 users: it returned a slice where it had passed an array by value, and " +
		"put a semaphore around the work. Each stage as the post has it, on net/http and on fiber, and Dunlin's beside them, " +
		"without a semaphore: 1,000 connections, server and load sharing two cores. The servers count their goroutines themselves, as the post's did.",
	Metrics: []results.Metric{
		results.PeakRSS, results.CPU, results.Goroutines, results.Throughput, results.P50, results.P99, results.Errors,
	},
	Needs: []string{"users"}, Peers: peer.Stages, MaxRounds: 3,
	Commands: func(e *Env) []string {
		return []string{stagesLoad.Command(e.Folders.Bench, exampleAddr, e.Cores.Both, stagesTime(e)).String()}
	},
	Round: stagesRound,
	load:  &stagesLoad,
	cores: func(e *Env) (server, client []int) { return e.Cores.Both, e.Cores.Both },
}

func stagesTime(e *Env) time.Duration {
	if e.Short {
		return 2 * time.Second
	}
	return max(e.Duration, 4*time.Second)
}

func stagesRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Both)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	got, cpu, err := e.measure(ctx, stagesLoad, s, e.Cores.Both, stagesTime(e))
	if err != nil {
		return nil, err
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	counted := goroutineCounts(s.Output())
	if len(counted) == 0 {
		return nil, fmt.Errorf("it has not counted its goroutines%s", quote(s.Output()))
	}
	e.record("stages", p.Name, results.Series{Name: "goroutines", Every: goroutinesEvery.Seconds(), Values: counted})
	sample := latencies(got)
	sample[results.PeakRSS.Key] = megabytes(peak)
	sample[results.CPU.Key] = perRequest(cpu, got.Requests)
	sample[results.Goroutines.Key] = slices.Max(counted)
	sample[results.Throughput.Key] = float64(got.Requests) / got.Duration.Seconds()
	sample[results.Errors.Key] = float64(got.Errors())
	return sample, nil
}

// goroutinesEvery is the interval at which a server of peers/stages prints its number of
// goroutines.
const goroutinesEvery = 100 * time.Millisecond

// goroutineCounts returns the numbers of goroutines in the output of such a server.
func goroutineCounts(output string) []float64 {
	var counts []float64
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		var n float64
		if _, err := fmt.Sscanf(lines.Text(), "num go routine %f", &n); err == nil {
			counts = append(counts, n)
		}
	}
	return counts
}

// record stores values of a peer over time in a scenario. They replace the values of an earlier
// round.
func (e *Env) record(scenario, peer string, s results.Series) {
	if e.recorded == nil {
		e.recorded = map[[2]string]results.Series{}
	}
	e.recorded[[2]string{scenario, peer}] = s
}

// Recorded returns the values that record has stored. some reports whether there are any.
func (e *Env) Recorded(scenario, peer string) (s results.Series, some bool) {
	s, some = e.recorded[[2]string{scenario, peer}]
	return s, some
}
