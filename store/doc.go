// Package store stores state that requests and server processes share: values changed by compare-and-set, numbers
// that calls add to, and messages for subscribers. Sessions, rate limits and idempotency keys use it.
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE"))
//
// opens the store of a URL. An empty URL opens a store in memory ([NewMemory]). Packages of other stores register a
// URL scheme. Package store/redis, a separate module, registers redis and rediss.
//
// Every store passes the tests of package store/storetest. [Guard] adds a deadline and a circuit breaker to the calls of
// a remote store.
//
//	store.go   the interface, its errors
//	memory.go  the store in memory, numbers.go its table of numbers, expiry.go removal of expired entries, topics.go messages
//	parts.go   limits on the values with a key prefix, and the warning that the store in memory is nearly full
//	guard.go   deadlines and the circuit breaker
//	open.go    stores by URL
package store
