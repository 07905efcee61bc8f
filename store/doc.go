// Package store is what requests, and the machines that serve them, share: values that
// are changed by compare-and-set, numbers that are changed by small scripts, and
// messages to whoever listens. Sessions, rate limits and idempotency keys stand on it.
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE"))
//
// opens the store that a URL names, and for an empty URL one in memory ([NewMemory]).
// Other stores are packages that register a scheme; package store/redis, a module of its
// own, does so for redis and rediss.
//
// Every store passes the suite of package store/storetest. What one of another machine
// adds, that calls can fail and take long, [Guard] bounds: a deadline and a circuit
// breaker on every call.
//
//	store.go   the interface, its errors
//	script.go  numbers and scripts
//	memory.go  the store in memory, numbers.go its table of numbers, expiry.go what becomes of the old, topics.go its messages
//	parts.go   bounds in it for values of one use, and the warning that it is nearly full
//	guard.go   deadlines and the circuit breaker
//	open.go    stores by URL
package store
