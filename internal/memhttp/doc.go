// Package memhttp is the adapter without a network: it answers a request of net/http by the
// pipeline of an app, for tests. It is the smallest adapter, and the one to read first. Each request
// has a wire and a goroutine, its answer a pipe. Nothing is counted, bounded or can be hijacked.
package memhttp
