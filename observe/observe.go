// Package observe names the origins of answers, for observers such as access logs and traces: see AnswerInfo.Source of package
// dunlin.
package observe

import "github.com/dunlinhttp/dunlin/internal/exchange"

// Source names the origin of an answer.
type Source uint8

const (
	SourceAction   = Source(exchange.FromAction)   // the action of a route, or its middleware
	SourceApp      = Source(exchange.FromApp)      // the app, if no route matches: 404, 405, 406, OPTIONS, redirects
	SourcePanic    = Source(exchange.FromPanic)    // the function given to App.Recover, or the default, after a panic
	SourceTimeout  = Source(exchange.FromTimeout)  // Group.WithTimeout: the action is still running
	SourceLimit    = Source(exchange.FromLimit)    // Route.Limit or LimitBy
	SourceOverload = Source(exchange.FromOverload) // the request waited longer than Config.Limits.QueueTarget
	SourceMemory   = Source(exchange.FromMemory)   // the memory budget had no room for the request
	SourceProtocol = Source(exchange.FromProtocol) // the request was malformed, too large or too slow
)

// String returns the name of the source, such as action, app or panic.
func (s Source) String() string { return exchange.Source(s).String() }
