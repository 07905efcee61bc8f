package dunlin

import (
	"context"
	"net/http"
	"time"
)

// The end of an app has an order: it says that it should get no more requests
// (Readiness), and after a while stops accepting, tells what runs long
// (Draining), closes each connection after its answer, and waits for what is
// left until the deadline.

// Drain ends the app in order, as Run does when it is told to stop: Readiness
// turns 503, Config.DrainGrace passes, and the rest is Shutdown. When ctx ends
// first, even in the grace, what is left is closed and ctx's error returned.
func (a *App) Drain(ctx context.Context) error {
	a.servers.Unready()
	if a.config.DrainGrace > 0 {
		grace := time.NewTimer(a.config.DrainGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
		case <-ctx.Done():
		}
	}
	return a.Shutdown(ctx)
}

// Draining returns a channel that is closed when the app begins to shut down.
// What would last, such as a stream, should come to its end then: a request that does
// not has its context cancelled only at the deadline. The context of a stream of events
// ([SSE]) is cancelled at once.
func (a *App) Draining() <-chan struct{} { return a.servers.Draining() }

// Draining is App.Draining of the app that serves the request.
func (r *Request) Draining() <-chan struct{} { return r.app.Draining() }

// noStore keeps answers about this moment out of caches.
var noStore = NewHeaderBlock("Cache-Control", "no-store")

// Readiness returns the action for a health route, which should be [Route.Critical]:
// 200 «ok», and 503 «draining» as soon as the app is about to end, so that balancers
// send their requests elsewhere. After a restart that handed the listeners on it stays
// at 200.
func (a *App) Readiness() Action {
	return func(*Request) Response {
		if !a.servers.Ready() {
			return Text("draining\n").Status(http.StatusServiceUnavailable).Headers(noStore)
		}
		return Text("ok\n").Headers(noStore)
	}
}
