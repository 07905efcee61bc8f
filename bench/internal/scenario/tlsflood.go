//go:build linux

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// tlsFlood measures clients that resume a TLS session, while other clients request more handshakes than the server can
// complete.
var tlsFlood = Scenario{
	Name: "tls-flood", Title: "Clients with a TLS session beside a flood of handshakes",
	About: "10,000 connections a second ask for a whole handshake each, which none brings to an end. A client connects over and over with " +
		"the session it has, and asks for plain text: its p99, from connect to answer, over that before. Unserved are connections that came to " +
		"nothing, and those beside the flood that were not resumed.",
	Metrics:   []results.Metric{results.QuietP99, results.P50, results.P99, results.P99Ratio, results.Unserved, results.PeakRSS},
	Needs:     []string{"plaintext"},
	Peers:     peer.ByTLS[1:],
	MaxRounds: 3, WithoutWrk: true,
	Commands: func(e *Env) []string {
		return []string{
			proc.Command{Path: "compare", Args: tlsReturningArgs(e, exampleAddr), Cores: e.Cores.Load}.String(),
			proc.Command{Path: "compare", Args: tlsFloodArgs(e, exampleAddr), Cores: e.Cores.Load}.String(),
		}
	},
	Round: tlsFloodRound,
}

// returns returns the duration for which the clients with a session are measured.
func returns(e *Env) time.Duration { return max(e.Duration, 2*time.Second) }

func tlsReturningArgs(e *Env, addr string) []string {
	return []string{"load", "tlsreturning", "-addr", addr, "-path", "/plaintext", "-duration", returns(e).String()}
}

func tlsFloodArgs(e *Env, addr string) []string {
	return []string{"load", "tlsflood", "-addr", addr, "-rate", strconv.Itoa(10_000), "-duration", (returns(e) + 2*beforeSlow).String()}
}

// returning returns the results of a client with a session.
func (h *holder) returning() (got load.TLSReturningResult, err error) {
	line, err := h.ask("measure")
	if err == nil {
		err = json.Unmarshal([]byte(line), &got)
	}
	if err != nil {
		return got, fmt.Errorf("client with a session: %w", err)
	}
	return got, nil
}

func tlsFloodRound(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
	s, err := e.start(ctx, p, e.Cores.Server)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	client, err := e.holdWith(ctx, tlsReturningArgs(e, s.addr))
	if err != nil {
		return nil, err
	}
	defer client.Stop()
	quiet, err := client.returning()
	if err != nil {
		return nil, err
	}
	flood, err := proc.Start(ctx, proc.Command{Path: e.Self, Args: tlsFloodArgs(e, s.addr), Cores: e.Cores.Load})
	if err != nil {
		return nil, err
	}
	defer flood.Stop()
	if err := pause(ctx, beforeSlow); err != nil {
		return nil, err
	}
	beside, err := client.returning()
	if err != nil {
		return nil, err
	}
	if err := flood.Wait(); err != nil {
		return nil, err
	}
	var flooded load.TLSFloodResult
	if err := json.Unmarshal([]byte(flood.Output()), &flooded); err != nil {
		return nil, fmt.Errorf("flood: %w in %q", err, flood.Output())
	}
	if flooded.Answered == 0 {
		return nil, errors.New("the server has begun no handshake of the flood")
	}
	peak, err := s.PeakRSS()
	if err != nil {
		return nil, err
	}
	return results.Sample{
		results.QuietP99.Key: milliseconds(quiet.P99),
		results.P50.Key:      milliseconds(beside.P50),
		results.P99.Key:      milliseconds(beside.P99),
		results.P99Ratio.Key: beside.P99.Seconds() / quiet.P99.Seconds(),
		results.Unserved.Key: float64(quiet.Failed + beside.Failed + beside.Whole),
		results.PeakRSS.Key:  megabytes(peak),
	}, nil
}
