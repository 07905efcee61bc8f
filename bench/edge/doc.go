// Package edge measures the cost of the middleware at the edge of a service: CORS, secure headers, the client's address
// behind a proxy, request identifiers and a rate limit in memory, all five together, on plaintext.
//
//	go test -C bench ./edge -bench Five -benchtime 300x
//
// Each server is a separate process, so its processor time can be measured: Dunlin on its event loops and fiber v3, each with
// and without the five. The servers run in turns of 25 ms on one core; the load runs on another core if there is one. The
// reported result is the median of the differences within a round. A second server without the five shows the error of the
// measurement (%error): the difference between two equal servers.
//
//	edge_test.go  the servers and the evaluation
//	load_test.go  the load, whose cost does not depend on the length of a response head
package edge
