//go:build linux

package scenario

import (
	"context"
	"strconv"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/peers/bulk/bulk"
)

// moves returns a scenario in which one connection over TLS transfers a large amount of data. up
// reports whether the client sends it.
func moves(name, title, about string, up bool) Scenario {
	one := func(e *Env, addr string) load.Bulk {
		b := load.Bulk{Addr: addr, Path: bulk.Path, Bytes: 1_000_000_000, Up: up, TLS: true}
		if e.Short {
			b.Bytes /= 4
		}
		return b
	}
	return Scenario{
		Name: name, Title: title, About: about, Peers: peer.Bulk, Needs: []string{"health"}, MaxRounds: 4, WithoutWrk: true,
		Metrics: []results.Metric{results.CPUPerGB, results.PeakRSS},
		Commands: func(e *Env) []string {
			return []string{proc.Command{Path: "compare", Args: bulkArgs(one(e, exampleAddr)), Cores: e.Cores.Load}.String()}
		},
		Round: func(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
			s, err := e.start(ctx, p, e.Cores.Server)
			if err != nil {
				return nil, err
			}
			defer s.Stop()
			moved := one(e, s.addr)
			cpu, err := s.spent(func() error {
				_, err := proc.Run(ctx, proc.Command{Path: e.Self, Args: bulkArgs(moved), Cores: e.Cores.Load})
				return err
			})
			if err != nil {
				return nil, err
			}
			peak, err := s.PeakRSS()
			if err != nil {
				return nil, err
			}
			return results.Sample{
				results.CPUPerGB.Key: milliseconds(cpu) / (float64(moved.Bytes) / 1e9),
				results.PeakRSS.Key:  megabytes(peak),
			}, nil
		},
	}
}

// bulkArgs returns the arguments with which this program transfers the data.
func bulkArgs(b load.Bulk) []string {
	args := []string{"load", "bulk", "-addr", b.Addr, "-path", b.Path, "-bytes", strconv.FormatInt(b.Bytes, 10)}
	if b.TLS {
		args = append(args, "-tls")
	}
	if b.Up {
		args = append(args, "-up")
	}
	return args
}
