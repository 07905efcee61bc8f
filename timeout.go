package dunlin

import (
	"fmt"
	"time"
)

// Timeout returns a group whose routes are answered with 503 when their action
// has not returned after d; zero sets none. It counts until the answer
// begins: a response that streams may take as long as it needs.
//
// The context of the request ends with the timeout, so that the action can stop. Once
// the answer has begun the context has no deadline any more: what streams, and a
// connection that was hijacked, go on until the client leaves.
func (g *Group) Timeout(d time.Duration) *Group {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: Timeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	sub := g.set("Timeout")
	sub.timeout = min(d, longest)
	return sub
}

// Timeout sets the timeout of one route, see Group.Timeout. It belongs before the
// route's first request.
func (r *Route) Timeout(d time.Duration) *Route {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: Timeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	r.shared.Timeout = min(d, longest)
	return r
}
