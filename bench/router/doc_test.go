// Package router_test compares routing through ServeHTTP in Dunlin and in popular routers: the 203 routes of the GitHub API,
// and the two routes of a small service. Every handler answers 204 and the writer discards it, so the figures show routing
// and the framework's work around it.
//
//	GOMAXPROCS=1 go test -bench . -count 10 | benchstat -col /router -
package router_test
