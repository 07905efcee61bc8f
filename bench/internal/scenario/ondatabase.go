//go:build linux

package scenario

import (
	"strconv"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

// onDatabase has the scenarios of the TechEmpower benchmarks, with their tables and rules.
var onDatabase = []Scenario{
	query("db", 64, "The answer is a row as JSON, read by its primary key: the action waits for as long as the database takes, some 50 to 250 µs. "+
		"PostgreSQL runs on the load's core and does not wait for its disk. All servers have the same driver (pgx), with a pool of 32 connections and prepared statements."),
	query("db-256", 256, "The same for more clients."),
	query("db-512", 512, "The same for more clients."),
	withDatabase(closedLoop(closed{
		name: "queries", title: "20 queries", check: "queries", maxRounds: 4,
		about: "Twenty rows as JSON, one query after the other.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/queries?n=20"},
	})),
	withDatabase(closedLoop(closed{
		name: "fortunes", title: "A page of fortunes", check: "fortunes", maxRounds: 4,
		about: "Twelve rows by one query, one more added, sorted and written as a page by html/template.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/fortunes"},
	})),
	withDatabase(closedLoop(closed{
		name: "updates", title: "20 updates", check: "updates", maxRounds: 4,
		about: "Twenty rows, each read by a query of its own, and written again in one batch.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/updates?n=20"},
	})),
	withDatabase(closedLoop(closed{
		name: "cached", title: "20 rows from a cache", check: "cached", maxRounds: 4,
		about: "Twenty rows as JSON from a map in memory: the same answer without a wait.",
		load:  load.Wrk{Threads: 1, Connections: 64, Path: "/cached?n=20"},
	})),
}

// query returns a scenario with one query for each request. connections is the number of
// connections of the load.
func query(name string, connections int, about string) Scenario {
	return withDatabase(closedLoop(closed{
		name: name, title: "One query, " + strconv.Itoa(connections) + " connections", check: "db", maxRounds: 4, about: about,
		load: load.Wrk{Threads: 1, Connections: connections, Path: "/db"},
	}))
}

func withDatabase(s Scenario) Scenario {
	s.Database = true
	return s
}
