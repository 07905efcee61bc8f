// Package admission decides what a server accepts: how much memory it may hold, and for which purpose. It knows neither
// connections nor HTTP.
//
//	budget.go     the memory held, by use
//	kept.go       caches, which are dropped first
//	holders.go    the memory held, by holder
//	account.go    one holder
//	room.go       reservations, waiting and eviction
//	beside.go     memory of a request beside its body
//	line.go       the order of large bodies
//	probe.go      requests that begin without a reservation
//	victims.go    the choice of holders to evict
//	caps.go       limits by connection and by address
//	shed.go       counts of refusals, by reason
//	freelist.go   bounded pools
//	addresses.go  connections by remote address
//	descriptors_*.go the default number of connections
//	keys.go       requests in flight by key
//	keycount.go   the map of counts for both
package admission
