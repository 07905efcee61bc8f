// Package htmx reads the request headers of htmx 2 (https://htmx.org) and sets its response headers.
//
//	func save(r *dunlin.Request) dunlin.Response {
//		resp := dunlin.Render(r, row(item))
//		resp = htmx.Retarget(resp, "#items")
//		return htmx.Trigger(resp, htmx.Event{Name: "saved", Detail: item.ID})
//	}
//
// If an action answers requests of htmx and other requests differently, use [Vary] to inform caches.
//
// Files: request.go has request headers, response.go response headers.
package htmx
