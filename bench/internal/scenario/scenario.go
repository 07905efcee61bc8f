//go:build linux

package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// A Scenario is what one table of the report shows.
type Scenario struct {
	Name, Title string
	About       string // the purpose of the scenario, in one or two sentences
	Metrics     []results.Metric
	Needs       []string // names of the checks that a peer must be expected to pass, and must pass
	MaxRounds   int      // 0 for no limit
	InShort     bool     // takes part in a run with -short
	Peers       []string // nil for all peers
	// ServersOnly omits frameworks that run on the server of another peer, because the scenario measures
	// the server.
	ServersOnly bool
	WithoutWrk  bool // does not use wrk
	WithH2Load  bool // requires the program h2load
	Database    bool // requires a database

	// Commands returns the commands of the load as lines for a shell.
	Commands func(e *Env) []string
	// Round measures a server once. The server was started for this round.
	Round func(ctx context.Context, e *Env, p peer.Built) (results.Sample, error)

	load         *load.Wrk // nil if the load is not a single call of wrk
	sampledEvery int       // in bytes, see SampledEvery
	cores        func(e *Env) (server, client []int)
}

// served are the metrics of closed loops.
var served = []results.Metric{
	results.CPU, results.Throughput, results.P50, results.P99, results.P999, results.PeakRSS, results.Errors,
}

// All has all scenarios, in the order of the report.
var All = slices.Concat(first, onDatabase, []Scenario{waits, mixed}, byTLS, h2Scenarios(), last)

var first = []Scenario{
	closedLoop(closed{
		name: "plaintext-64", title: "Plain text, 64 connections", check: "plaintext", inShort: true,
		about: "The least a service can do, on connections that stay open.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/plaintext"},
	}),
	closedLoop(closed{
		name: "plaintext-1000", title: "Plain text, 1,000 connections", check: "plaintext",
		about: "The same over many connections: what one costs shows as their number grows.",
		load:  load.Wrk{Threads: 1, Connections: 1000, Path: "/plaintext"},
	}),
	closedLoop(closed{
		name: "json", title: "A small JSON object", check: "json", inShort: true,
		about: "One field, encoded for each request.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/json"},
	}),
	closedLoop(closed{
		name: "param", title: "A path parameter", check: "param",
		about: "A UUID taken from the path and sent back.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/users/" + peer.UserID},
	}),
	closedLoop(closed{
		name: "headers", title: "Three headers", check: "headers",
		about: "Content-Type, Content-Length and Cache-Control beside twelve bytes of body.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/headers"},
	}),
	closedLoop(closed{
		name: "echo-1k", title: "Echo of 1 KB", check: "echo",
		about: "A body is read and sent back.",
		load:  load.Wrk{Threads: 1, Connections: 64, Script: "echo.lua", ScriptArgs: []string{"1024"}, Path: "/echo"},
	}),
	closedLoop(closed{
		name: "echo-64k", title: "Echo of 64 KB", check: "echo-large",
		about: "The same with a body that does not fit one read.",
		load:  load.Wrk{Threads: 1, Connections: 64, Script: "echo.lua", ScriptArgs: []string{"65536"}, Path: "/echo"},
	}),
	closedLoop(closed{
		name: "users", title: "1,000 users as JSON, 1,000 connections", check: "users", inShort: true, bothCores: true,
		atLeast: 4 * time.Second, maxRounds: 4,
		sampledEvery: 4096, // a request has thousands of allocations; if all were recorded, garbage collection would take minutes
		about: "108 KB of JSON built anew for each request, for 1,000 connections at once, server and load " +
			"sharing two cores. The post that began with 897 MB of memory measured this.",
		load:    load.Wrk{Threads: 2, Connections: 1000, Path: "/api/v1/users"},
		metrics: []results.Metric{results.PeakRSS, results.CPU, results.Throughput, results.P50, results.P99, results.P999, results.Errors},
	}),
	closedLoop(closed{
		name: "pipelined", title: "Plain text, 16 requests pipelined", check: "plaintext",
		about: "Sixteen requests a write: the kernel's share shrinks and the framework's shows.",
		load:  load.Wrk{Threads: 1, Connections: 64, Script: "pipeline.lua", ScriptArgs: []string{"16"}, Path: "/plaintext"},
		// wrk corrects its percentiles by the time between responses. With pipelining this time has no
		// meaning.
		metrics: []results.Metric{results.CPU, results.Throughput, results.PeakRSS, results.Errors},
	}),
	closedLoop(closed{
		name: "short-connections", title: "A connection for each request", check: "plaintext", inShort: true,
		about: "Connection: close on every request.",
		load:  load.Wrk{Threads: 1, Connections: 64, Headers: []string{"Connection: close"}, Path: "/plaintext"},
		floor: []string{"-close"},
	}),
	closedLoop(closed{
		name: "growing-paths", title: "Paths that grow", check: "paths",
		about: "A hundred paths, each a segment longer than the last, up to about 300 bytes, all for one catch-all. A router " +
			"that splits paths allocates more with every segment.",
		load: load.Wrk{Threads: 1, Connections: 64, Script: "paths.lua", Path: "/"},
	}),
	closedLoop(closed{
		name: "from-std", title: "Handlers of net/http", check: "plaintext", peers: stdHandlers,
		about: "The same handlers, written for net/http, on both servers: on net/http and on the loop engine.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/plaintext"},
	}),
}

var last = []Scenario{
	stages,
	file,
	sleepers,
	slowReaders,
	overload,
	idleMemory,
	idleCPU,
	footprint,
}

// Named returns the scenarios with the given names. It returns an error for an unknown name.
func Named(names []string) ([]Scenario, error) {
	var picked []Scenario
	for _, name := range names {
		i := slices.IndexFunc(All, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario is called %q", name)
		}
		picked = append(picked, All[i])
	}
	return picked, nil
}

// Takes reports whether a peer takes part in the scenario. failed has the checks that the peer has failed.
func (s Scenario) Takes(p peer.Peer, failed map[string]string) bool {
	if !p.In(s.Name) || s.ServersOnly && p.On != "" || s.Peers != nil && !slices.Contains(s.Peers, p.Name) {
		return false
	}
	for _, check := range s.Needs {
		if !p.Serves(check) || failed[check] != "" {
			return false
		}
	}
	return true
}

// MetricKeys returns the keys of the metrics, which are the columns of the table.
func (s Scenario) MetricKeys() []string {
	keys := make([]string, len(s.Metrics))
	for i, metric := range s.Metrics {
		keys[i] = metric.Key
	}
	return keys
}
