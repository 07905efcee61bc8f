package dunlin

import (
	"context"
	"net/http"
	"time"
)

// Drain ends the app in order, as Run does after a signal: Readiness answers 503, Config.Process.DrainGrace
// passes, and Shutdown follows. If ctx ends first, even during the grace, Drain closes the
// remaining connections and returns the error of ctx.
func (a *App) Drain(ctx context.Context) error {
	a.servers.Unready()
	if a.config.Process.DrainGrace > 0 {
		grace := time.NewTimer(a.config.Process.DrainGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
		case <-ctx.Done():
		}
	}
	return a.Shutdown(ctx)
}

// Draining returns a channel that is closed when the app begins to shut down. Long-running work
// such as a stream should then end. The context of other requests is cancelled at the deadline of
// the shutdown; the context of an event stream ([SSE]) is cancelled earlier, see there.
func (a *App) Draining() <-chan struct{} { return a.servers.Draining() }

// Go runs f in its own goroutine as a background worker of the app, from the first Serve or Run until f returns. It may be
// called before that, and while the app serves. When the app drains, the context of f ends after the app has stopped
// accepting; Shutdown waits for f as it waits for requests. In a restart the worker of the new process starts earlier, see Run.
//
// A panic of f is recovered and logged. An error is logged unless the context has ended. f is not called again. [Stats].Workers
// counts workers by name; several may have the same name.
func (a *App) Go(name string, f func(context.Context) error) {
	if name == "" || f == nil {
		panic("dunlin: Go: the worker has no name, or no function (called at " + callerPlace() + ")")
	}
	a.servers.Go(name, f, a.log)
}

// Draining calls [App.Draining] of the app that serves the request.
func (r *Request) Draining() <-chan struct{} { return r.app.Draining() }

// noStore keeps answers about the current state out of caches.
var noStore = NewHeaderBlock("Cache-Control", "no-store")

// Readiness returns the action for a health route, which should be [Route.Critical]. It answers 200
// «ok», and 503 «draining» once the app is about to end, so that load balancers stop sending
// requests. After a restart that handed over the listeners it continues to answer 200.
func (a *App) Readiness() Action {
	return func(*Request) Response {
		if !a.servers.Ready() {
			return Text("draining\n").Status(http.StatusServiceUnavailable).With(noStore)
		}
		return Text("ok\n").With(noStore)
	}
}
