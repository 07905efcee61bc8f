// Package edge measures the cost of five features at the edge of a service: CORS, secure headers, the client's address behind
// a proxy, request IDs, and a rate limit in memory. All five are measured together, with responses of plain text.
//
//	go test -C bench ./edge -bench Five -benchtime 300x
//
// Each server is a separate process, so that its CPU time can be measured. The servers are Dunlin on its event loops and
// fiber v3, each with and without the five features. The servers run in turn for 25 ms each on one core. The load runs on
// another core if the machine has one. The result is the median of the differences within a round. A second server without
// the features shows the error of the measurement (%error): the difference between two equal servers.
//
//	edge_test.go  the servers and the evaluation
//	load_test.go  the load, whose cost does not depend on the length of a response head
package edge
