//go:build linux

package scenario

import (
	"context"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// stdHandlers lists the two peers that run the same handlers.
var stdHandlers = []string{peer.DunlinFromStd, peer.NetHTTP}

// fileLoad requests a file that is so large that only few responses complete. Therefore bytes are counted instead
// of responses.
var fileLoad = load.Wrk{Threads: 1, Connections: 8, Path: "/file"}

var file = Scenario{
	Name: "file", Title: "A file of 100 MB, 8 connections", Peers: stdHandlers, Needs: []string{"plaintext"},
	About:   "http.ServeFile, which leaves the copying to the system.",
	Metrics: []results.Metric{results.CPUPerGB, results.PeakRSS, results.Errors},
	Commands: func(e *Env) []string {
		return []string{fileLoad.Command(e.Folders.Bench, exampleAddr, e.Cores.Load, e.Duration).String()}
	},
	Round: func(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
		s, err := e.start(ctx, p, e.Cores.Server)
		if err != nil {
			return nil, err
		}
		defer s.Stop()
		counted, cpu, err := e.measure(ctx, fileLoad, s, e.Cores.Load, e.Duration)
		if err != nil {
			return nil, err
		}
		peak, err := s.PeakRSS()
		if err != nil {
			return nil, err
		}
		return results.Sample{
			results.CPUPerGB.Key: cpu.Seconds() * 1e3 / (float64(max(counted.Bytes, 1)) / 1e9),
			results.PeakRSS.Key:  megabytes(peak),
			// wrk counts a response that takes more than two seconds as an error. Here such a response is not an
			// error.
			results.Errors.Key: float64(counted.Errors() - counted.Timeouts),
		}, nil
	},
}
