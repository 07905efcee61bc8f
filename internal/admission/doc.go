// Package admission has counters: of connections and requests up to a limit, and of refusals by reason. It also has free
// lists of objects for reuse.
//
//	addresses.go  connections by remote address
//	descriptors_*.go the default number of connections
//	keys.go       requests in flight by key
//	keycount.go   the map of counts that both use
//	shed.go       counts of refusals, by reason
//	freelist.go   bounded pools
package admission
