// Package resilience has a circuit breaker and a single flight, which merges concurrent calls, for calls to other services.
// Both are independent of the rest of Dunlin.
package resilience
