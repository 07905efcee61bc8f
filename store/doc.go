// Package store keeps state that requests and server processes share: values changed by compare-and-set, numbers
// that calls add to, and messages for subscribers. Sessions, rate limits and idempotency keys use it.
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE"))
//
// opens the store of a URL. An empty URL opens a store in memory ([NewMemory]). Packages of other stores register a
// scheme; package store/redis, a module of its own, registers redis and rediss.
//
// Every store passes the tests of package store/storetest. [Guard] bounds the calls of a remote store with a deadline
// and a circuit breaker.
//
//	store.go   the interface, its errors
//	memory.go  the store in memory, numbers.go its table of numbers, expiry.go removal of expired entries, topics.go messages
//	parts.go   bounds in it for values of one use, and the warning that it is nearly full
//	guard.go   deadlines and the circuit breaker
//	open.go    stores by URL
package store
