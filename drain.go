package dunlin

import (
	"context"
	"net/http"
	"time"
)

// Drain ends the app as Run does after a signal: Readiness answers 503, Drain waits for
// Config.Process.DrainGrace, and then calls Shutdown. If ctx ends first, even during the grace, Drain
// closes the remaining connections and returns the error of ctx.
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

// Draining returns a channel that is closed when the app begins to shut down. Long-running work such
// as a stream should then end. The context of a request is cancelled at the deadline of the shutdown,
// but that of an event stream is cancelled earlier, see [SSE].
func (a *App) Draining() <-chan struct{} { return a.servers.Draining() }

// Go runs f in its own goroutine as a background worker of the app, from the first Serve or Run until f returns. It may be
// called before the app serves, and also later. When the app drains, it stops accepting connections and then cancels the context
// of f. Shutdown waits for f as it waits for requests. In a restart the worker of the new process starts earlier, see Run.
//
// A panic of f is recovered and logged. An error is logged unless the context has ended. f is not called again. App.Stats has
// counts of workers by name. Several workers may have the same name.
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

// Readiness returns the action for a health route, which should be [Route.Critical]. It answers 200 «ok»
// while the app serves. It answers 503 «draining» once the app drains, so that load balancers stop sending
// requests, but 200 in a restart, in which the new process serves the listeners.
func (a *App) Readiness() Action {
	return func(*Request) Response {
		if !a.servers.Ready() {
			return Text("draining\n").Status(http.StatusServiceUnavailable).With(noStore)
		}
		return Text("ok\n").With(noStore)
	}
}
