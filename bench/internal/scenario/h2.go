//go:build linux

package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// An h2Closed scenario runs h2load in a closed loop. It also makes a run with the minimum number of requests, which mostly measures
// the cost of opening connections. It subtracts the requests and the cost of this run from those of the long run.
type h2Closed struct {
	name, title, about, check string
	load                      load.H2Load
	peers                     []string
	atLeast                   time.Duration // minimum duration of a meaningful measurement
	inShort                   bool
}

// h2Served lists the metrics of these scenarios. It has no latencies, because h2load measures them in a closed loop and prints only a
// mean and a range.
var h2Served = []results.Metric{results.CPU, results.Throughput, results.PeakRSS, results.Errors}

func (c h2Closed) scenario() Scenario {
	return Scenario{
		Name: c.name, Title: c.title, About: c.about, Metrics: h2Served, Needs: []string{c.check}, Peers: c.peers,
		InShort: c.inShort, WithoutWrk: true, WithH2Load: true,
		Commands: func(e *Env) []string {
			of, err := peer.Named(c.peers[:1])
			if err != nil {
				return nil
			}
			return []string{c.of(of[0]).Command(exampleAddr, e.Cores.Load, 10*c.load.Least()).String()}
		},
		Round: c.round,
	}
}

// of returns the load for one of the peers.
func (c h2Closed) of(p peer.Peer) load.H2Load {
	h := c.load
	h.TLS, h.HTTP1 = p.TLS, !p.H2
	return h
}

func (c h2Closed) duration(e *Env) time.Duration { return max(e.Duration, c.atLeast) }

func (c h2Closed) round(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	h := c.of(p.Peer)
	warm, err := h.Run(ctx, s.addr, e.Cores.Load, h.Least())
	if err != nil {
		return nil, err
	}
	requests := max(h.Least(), int(float64(h.Least())*c.duration(e).Seconds()/warm.Duration.Seconds()))
	counted, cpu, err := h2Measure(ctx, e, s, h, h.Least()+requests)
	if err != nil {
		return nil, err
	}
	opened, cost, err := h2Measure(ctx, e, s, h, h.Least())
	if err != nil {
		return nil, err
	}
	errs := counted.Errors() + opened.Errors()
	counted.Requests -= opened.Requests
	counted.Duration -= opened.Duration
	cpu -= cost
	if counted.Requests <= 0 || counted.Duration <= 0 || cpu <= 0 {
		return nil, fmt.Errorf("%d more requests than %d took only %v longer and %v more CPU time: opening the connections dominates the measurement", requests, h.Least(), counted.Duration, cpu)
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	return results.Sample{
		results.CPU.Key:        perRequest(cpu, counted.Requests),
		results.Throughput.Key: float64(counted.Requests) / counted.Duration.Seconds(),
		results.PeakRSS.Key:    megabytes(peak),
		results.Errors.Key:     float64(errs),
	}, nil
}

// h2Measure runs the given number of requests. It also returns the CPU time that the server has used for them.
func h2Measure(ctx context.Context, e *Env, s *server, h load.H2Load, requests int) (counted load.H2LoadResult, cpu time.Duration, err error) {
	cpu, err = s.spent(func() (err error) {
		counted, err = h.Run(ctx, s.addr, e.Cores.Load, requests)
		return err
	})
	return counted, cpu, err
}

// h2 has the scenarios with HTTP/2 in a closed loop.
var h2 = []h2Closed{
	{
		name: "h2-64", title: "HTTP/2 over TLS, 64 connections with one stream", check: "plaintext", peers: peer.H2ByTLS, inShort: true,
		about: "Plain text, a request at a time on each connection: the cost of a stream beside TLS and the system calls. " +
			"The peer without h2 in its name uses HTTP/1.1, with the same load generator.",
		load: load.H2Load{Connections: 64, Streams: 1, Path: "/plaintext"},
	},
	{
		name: "h2-16x32", title: "HTTP/2 over TLS, 16 connections with 32 streams", check: "plaintext", peers: peer.H2ByTLS[:5], inShort: true,
		about: "Plain text, 32 requests at once on each connection, as of a proxy or a gRPC client: the cost of a stream when reads and writes are shared.",
		load:  load.H2Load{Connections: 16, Streams: 32, Path: "/plaintext"},
	},
	{
		name: "h2c-16x32", title: "HTTP/2 in clear text, 16 connections with 32 streams", check: "plaintext", peers: peer.H2InClear,
		about: "The same without TLS.",
		load:  load.H2Load{Connections: 16, Streams: 32, Path: "/plaintext"},
	},
	{
		name: "h2-json", title: "A small JSON object over HTTP/2", check: "json", peers: peer.H2ByTLS,
		about: "One field, encoded for each request, over TLS on 64 connections with one stream. The peer without h2 in its name uses HTTP/1.1.",
		load:  load.H2Load{Connections: 64, Streams: 1, Path: "/json"},
	},
	{
		name: "h2-param", title: "A path parameter over HTTP/2", check: "param", peers: peer.H2ByTLS,
		about: "A UUID taken from the path and sent back, over TLS on 64 connections with one stream. The peer without h2 in its name uses HTTP/1.1.",
		load:  load.H2Load{Connections: 64, Streams: 1, Path: "/users/" + peer.UserID},
	},
	{
		name: "h2-users", title: "1,000 users as JSON over HTTP/2", check: "users", peers: peer.H2ByTLS, atLeast: time.Second,
		about: "108 KB of JSON built anew for each request, over TLS on 64 connections with one stream. The peer without h2 in its name uses HTTP/1.1.",
		load:  load.H2Load{Connections: 64, Streams: 1, Path: "/api/v1/users"},
	},
}

// h2Scenarios returns all scenarios with HTTP/2.
func h2Scenarios() []Scenario {
	var all []Scenario
	for _, c := range h2 {
		all = append(all, c.scenario())
	}
	return append(all, h2Blocked, h2Attacks)
}
