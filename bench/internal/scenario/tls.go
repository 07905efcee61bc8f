//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// byTLS has the scenarios over TLS. One scenario measures handshakes. The other scenarios do not count the handshakes.
var byTLS = []Scenario{
	closedLoop(closed{
		name: "tls-64", title: "Plain text over TLS, 64 connections", check: "plaintext", inShort: true, peers: peer.ByTLS,
		about: "HTTP/1.1 over TLS 1.3, on connections that stay open; Dunlin in clear text beside it. Half a second in " +
			"which the connections begin is not counted, and neither is its cost.",
		load: load.Wrk{Threads: 1, Connections: 64, Path: "/plaintext"}, opening: 500 * time.Millisecond,
		atLeast: 2 * time.Second, // another run measures the cost of the connections, which must be a small part of the total
	}),
	closedLoop(closed{
		name: "tls-1000", title: "Plain text over TLS, 1,000 connections", check: "plaintext", peers: peer.ByTLS,
		about: "The same over 1,000 connections. The first two seconds, with all handshakes, are not counted; the percentiles are of the whole time.",
		load:  load.Wrk{Threads: 1, Connections: 1000, Path: "/plaintext"}, opening: 2 * time.Second,
		atLeast: 4 * time.Second, maxRounds: 4,
	}),
	closedLoop(closed{
		name: "tls-handshakes", title: "A TLS connection for each request", check: "plaintext", peers: peer.ByTLS,
		about: "Connection: close on every request, and no sessions: a whole handshake each, with ECDSA by P-256.",
		load:  load.Wrk{Threads: 1, Connections: 64, Headers: []string{"Connection: close"}, Path: "/plaintext"},
	}),
	tlsFlood,
	closedLoop(closed{
		name: "tls-users", title: "1,000 users as JSON over TLS, 1,000 connections", check: "users", peers: peer.UsersByTLS, bothCores: true,
		about: "The scenario users, over TLS, with 24 MiB of memory for Dunlin; hertz in clear text beside it.",
		load:  load.Wrk{Threads: 2, Connections: 1000, Path: "/api/v1/users"}, opening: 2 * time.Second,
		atLeast: 4 * time.Second, maxRounds: 4, sampledEvery: 4096,
		metrics: []results.Metric{results.CPU, results.PeakRSS, results.Throughput, results.P50, results.P99, results.P999, results.Errors},
	}),
	held("tls-idle-memory", "Memory of idle connections over TLS",
		"5,000 connections that have shaken hands, asked once and stay open: growth of the server's resident memory over each.",
		load.Hold{Path: "/plaintext", Connections: 5_000, TLS: true}),
	held("tls-hello-memory", "Memory of unfinished TLS handshakes",
		"5,000 connections that stop in the middle of their ClientHello: growth of the server's resident memory over each.",
		load.Hold{Path: "/plaintext", Connections: 5_000, Hello: true}),
	moves("tls-bulk-down", "1 GB down over TLS",
		"An answer of 1 GB in pieces of 64 KB, on one connection, its handshake included. The records are sealed for it: no file is sent.", false),
	moves("tls-bulk-up", "1 GB up over TLS", "A body of 1 GB, which the server reads 64 KB at a time and counts.", true),
}

// held returns a scenario in which connections over TLS stay open.
func held(name, title, about string, hold load.Hold) Scenario {
	all := func(e *Env, addr string) load.Hold {
		hold := hold
		hold.Addr, hold.Connections = addr, maxHeld(e, hold.Connections)
		return hold
	}
	return Scenario{
		Name: name, Title: title, About: about,
		Metrics:   []results.Metric{results.PerConn, results.Connections, results.PeakRSS},
		Needs:     []string{"plaintext"},
		Peers:     peer.ByTLS[1:],
		MaxRounds: 3,
		Commands: func(e *Env) []string {
			return []string{proc.Command{Path: "compare", Args: holdArgs(all(e, exampleAddr)), Cores: e.Cores.Load}.String()}
		},
		Round: func(ctx context.Context, e *Env, p peer.Built) (results.Sample, error) {
			return holdRound(ctx, e, p, all)
		},
	}
}
