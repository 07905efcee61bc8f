//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// A closed scenario runs wrk, which is a closed loop: each connection sends its next request after the response.
type closed struct {
	name, title, about, check string
	load                      load.Wrk
	metrics                   []results.Metric // nil for the metrics in served
	peers                     []string         // nil for all peers
	inShort                   bool
	atLeast                   time.Duration // minimum duration of a meaningful measurement
	maxRounds                 int           // 0 for no limit
	bothCores                 bool          // the server and the load share two cores, instead of having one core each
	sampledEvery              int           // see Scenario.SampledEvery
	floor                     []string      // additional arguments of the peer floor in this scenario

	// opening is the time in which the connections are made, with a margin. A run of this duration measures the cost of making
	// connections, which is subtracted. If opening is 0, this cost is part of the scenario.
	opening time.Duration
}

func (c closed) cores(e *Env) (server, client []int) {
	if c.bothCores {
		return e.Cores.Both, e.Cores.Both
	}
	return e.Cores.Server, e.Cores.Load
}

func (c closed) duration(e *Env) time.Duration {
	if e.Short {
		return max(e.Duration, c.atLeast/2)
	}
	return max(e.Duration, c.atLeast)
}

func closedLoop(c closed) Scenario {
	metrics := c.metrics
	if metrics == nil {
		metrics = served
	}
	return Scenario{
		Name: c.name, Title: c.title, About: c.about, Metrics: metrics, Needs: []string{c.check}, InShort: c.inShort,
		MaxRounds: c.maxRounds, Peers: c.peers, load: &c.load, sampledEvery: c.sampledEvery, cores: c.cores,
		Commands: func(e *Env) []string {
			_, client := c.cores(e)
			return []string{c.load.Command(e.Folders.Bench, exampleAddr, client, c.opening+c.duration(e)).String()}
		},
		Round: c.round,
	}
}

// exampleAddr is used in printed commands. Each run uses a free port instead.
const exampleAddr = "127.0.0.1:3000"

func (c closed) round(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	serverCores, loadCores := c.cores(e)
	var more []string
	if p.Name == "floor" {
		more = c.floor
	}
	s, err := e.start(ctx, p, serverCores, more...)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	counted, cpu, err := e.measure(ctx, c.load, s, loadCores, c.opening+c.duration(e))
	if err != nil {
		return nil, err
	}
	if c.opening > 0 {
		opened, cost, err := e.measure(ctx, c.load, s, loadCores, c.opening)
		if err != nil {
			return nil, err
		}
		counted, cpu = counted.Without(opened), cpu-cost
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	sample := latencies(counted)
	sample[results.CPU.Key] = perRequest(cpu, counted.Requests)
	sample[results.Throughput.Key] = float64(counted.Requests) / counted.Duration.Seconds()
	sample[results.PeakRSS.Key] = megabytes(peak)
	sample[results.Errors.Key] = float64(counted.Errors())
	return sample, nil
}

// latencies returns the latencies of the responses. If there were no responses, it returns the time that the clients waited,
// which is a lower bound.
func latencies(r load.WrkResult) results.Sample {
	if r.Requests == 0 {
		r.P50, r.P99, r.P999 = r.Duration, r.Duration, r.Duration
	}
	return results.Sample{
		results.P50.Key: milliseconds(r.P50), results.P99.Key: milliseconds(r.P99), results.P999.Key: milliseconds(r.P999),
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// megabytes returns bytes as a number of megabytes of 1,000,000 bytes, as published benchmarks and ps do.
func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// perRequest returns the CPU time of a request in microseconds. If there were no requests, it returns 0, and the number of
// errors shows the reason.
func perRequest(cpu time.Duration, requests int64) float64 {
	if requests == 0 {
		return 0
	}
	return cpu.Seconds() * 1e6 / float64(requests)
}
