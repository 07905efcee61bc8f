// Package admission decides what a server takes on: how much memory it may hold,
// and for what. It knows neither connections nor HTTP.
//
//	limit.go      how much memory the process may have
//	budget.go     who holds how much of it
//	collector.go  the garbage collector, paced to use the rest
//	shed.go       what was refused, by reason
//	addresses.go  how much each remote address has open
package admission
