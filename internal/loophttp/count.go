//go:build linux

package loophttp

import (
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// countAnswer counts the current request.
func (x *wire) countAnswer(a *exchange.Answer) { x.count.Add(x.d, &x.s.Route.Counts, x.outcome(a)) }

// outcome returns the class in which the current request is counted.
func (x *wire) outcome(a *exchange.Answer) tally.Outcome {
	server := x.handler.server
	return x.s.Outcome(a, x.c.Secure() || server.Proxies != nil && x.s.Path != "" && server.Secure(x)) // without a path, the fields are unknown
}

// Abandoned does nothing: the engine calls handler.Abandoned, which counts.
func (x *wire) Abandoned() {}
