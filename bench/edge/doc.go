// Package edge measures what the middleware at the edge of a service costs: CORS, secure headers, the client's address behind a
// proxy, request identifiers and a rate limit in memory, all five together, on plaintext.
//
//	go test -C bench ./edge -bench Five -benchtime 9x
//
// Each server is a process of its own, so that its processor time is its own: with and without the five, of Dunlin on its event
// loops and of fiber v3, in turns. What is reported is the median of the rounds.
package edge
