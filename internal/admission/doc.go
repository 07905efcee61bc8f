// Package admission decides what a server takes on: how much memory it may
// hold, how much work it lets in, and what it turns away when there is too much of
// either. It knows neither connections nor HTTP.
//
//	limit.go      how much memory the process may have
//	budget.go     who holds how much of it
//	collector.go  the garbage collector, paced to use the rest
//	queue.go      when a queue stands, and whom to turn away then
//	gate.go       how many may be in at once
//	gradient.go   a gate that finds its own width
package admission
