// Package stress is what must hold under stress, as tests that anybody can run: services in processes of their
// own, so that their memory and their exit codes can be looked at, under load from others.
//
//	go test ./stress                # small, with the rest of the module
//	go test ./stress -full -v       # in the sizes that are promised: some ten minutes
//
// Each logs what it has measured beside the bar. They need Linux, for /proc, and some of them wrk,
// h2load and slowhttptest, or the right to make a control group; what is missing is named and skipped, or fails with DUNLIN_REQUIRE_ALL=1.
package stress
