//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// closed is a scenario in which wrk asks as fast as it is answered.
type closed struct {
	name, title, about, check string
	load                      load.Wrk
	metrics                   []results.Metric // nil: served
	peers                     []string         // nil: all
	inShort                   bool
	atLeast                   time.Duration // it takes so long to show
	maxRounds                 int           // 0: as many as asked for
	bothCores                 bool          // server and load share two cores instead of one each
	sampledEvery              int           // see Scenario.SampledEvery
	floor                     []string      // arguments the floor needs to do this at all

	// opening is how long connections take to begin, with room: what that costs is measured by a run so long, and
	// subtracted. 0: it belongs to the scenario.
	opening time.Duration
}

func (c closed) cores(e *Env) (server, client []int) {
	if c.bothCores {
		return e.Place.Both, e.Place.Both
	}
	return e.Place.Server, e.Place.Load
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

// exampleAddr stands for the free port of each run.
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

// latencies are those of the answers. Where there was none at all, the time that was spent waiting
// stands for them: it was at least that.
func latencies(r load.WrkResult) results.Sample {
	if r.Requests == 0 {
		r.P50, r.P99, r.P999 = r.Duration, r.Duration, r.Duration
	}
	return results.Sample{
		results.P50.Key: milliseconds(r.P50), results.P99.Key: milliseconds(r.P99), results.P999.Key: milliseconds(r.P999),
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// megabytes are those of the posts and of ps: 1,000,000 bytes.
func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// perRequest is in microseconds; no requests at all give 0, beside the errors that say why.
func perRequest(cpu time.Duration, requests int64) float64 {
	if requests == 0 {
		return 0
	}
	return cpu.Seconds() * 1e6 / float64(requests)
}
