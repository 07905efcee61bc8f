// Package stress tests Dunlin under stress. The services run in separate processes, under load from other processes, so that
// the tests can check the memory and the exit codes of the services.
//
//	go test ./stress                # small sizes, together with the rest of the module
//	go test ./stress -full -v       # the sizes for which limits are promised, in about ten minutes
//
// Each test logs its measurements together with the limits. The tests need Linux, because they read /proc. Some need wrk,
// h2load or slowhttptest, or permission to create a control group. A test whose tools are missing names them and is skipped.
// With DUNLIN_REQUIRE_ALL=1 it fails instead.
package stress
