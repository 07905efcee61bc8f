// Package datastar implements the protocol of Datastar 1 (https://data-star.dev): it reads the signals
// of a page, and sends patches of the page's elements and signals as server-sent events.
//
// A response with a few patches:
//
//	func save(r *dunlin.Request) dunlin.Response {
//		var in struct{ Name string }
//		if err := datastar.ReadSignals(r, &in); err != nil {
//			return dunlin.Error(err)
//		}
//		return datastar.Answer(r, datastar.Elements{Component: row(in.Name)}, datastar.Signals{Values: map[string]any{"name": ""}})
//	}
//
// A long-lived stream sends patches as they are produced:
//
//	return dunlin.SSE(func(e *dunlin.Events) error {
//		return datastar.Send(e, datastar.Elements{HTML: `<p id="clock">12:00</p>`})
//	})
//
// Files: patch.go has the patches as events, signals.go reads signals, send.go sends patches.
package datastar
