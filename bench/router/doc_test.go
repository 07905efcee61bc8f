// Package router_test compares routing through ServeHTTP: the 203 routes of the GitHub API, and the two
// routes of a small service, in Dunlin and in the routers people use. Every handler answers 204 and
// the writer discards it, so the figures are for routing and what each framework does around it.
//
//	GOMAXPROCS=1 go test -bench . -count 10 | benchstat -col /router -
package router_test
