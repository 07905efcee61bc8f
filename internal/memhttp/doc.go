// Package memhttp is the adapter without a network: it answers a request of net/http by the
// pipeline of an app, for tests. It is the smallest adapter, and the one to read first. A
// request has a wire and a goroutine of its own, and its answer comes through a pipe. There are
// no connections, nor anything that bounds them; they cannot be hijacked. Requests are not counted.
package memhttp
