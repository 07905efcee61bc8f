// Package stress tests Dunlin under stress. Services run in processes of their own, under load from other processes, so that
// the tests can check their memory and exit codes.
//
//	go test ./stress                # small, with the rest of the module
//	go test ./stress -full -v       # in the promised sizes: some ten minutes
//
// Each test logs its measurements next to the limits. The tests need Linux, for /proc. Some need wrk, h2load and slowhttptest,
// or the right to create a control group. A test without its tools names them and is skipped, or fails with
// DUNLIN_REQUIRE_ALL=1.
package stress
