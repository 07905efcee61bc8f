// Package edge measures what the middleware at the edge of a service costs: CORS, secure headers, the client's address behind a
// proxy, request identifiers and a rate limit in memory, all five together, on plaintext.
//
//	go test -C bench ./edge -bench Five -benchtime 300x
//
// Each server is a process of its own, so that its processor time is its own: with and without the five, of Dunlin on its event
// loops and of fiber v3, in turns of 25 ms, on one core, while the load has another where there are two. What is reported as added is
// the median of the differences within a round. A second server without the five says by how much two differ that are the same (%error).
//
//	edge_test.go  the servers, and what is made of the turns
//	load_test.go  who asks them: at a cost that does not depend on how long the head of an answer is
package edge
