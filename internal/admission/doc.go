// Package admission counts: connections and requests up to a limit, refusals by reason, and spare memory for reuse.
//
//	addresses.go  connections by remote address
//	descriptors_*.go the default number of connections
//	keys.go       requests in flight by key
//	keycount.go   the map of counts for both
//	shed.go       counts of refusals, by reason
//	freelist.go   bounded pools
package admission
