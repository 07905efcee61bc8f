// Package pgtest starts a PostgreSQL server for the duration of a test. It does not depend on HTTP or a driver.
package pgtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Start starts a server with an empty database and returns its URL. It skips the test if PostgreSQL
// is not installed, or fails it if DUNLIN_REQUIRE_ALL is set.
func Start(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		return start(t, path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl") // Debian keeps it outside of the PATH
	if len(found) == 0 {
		missing(t, "PostgreSQL is not installed (Debian: apt-get install postgresql)")
	}
	return start(t, found[len(found)-1])
}

func start(t testing.TB, ctl string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "dunlin-postgres-*") // not t.TempDir: its path is too long, and its parents are private
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	attributes := ownAccount(t, folder)
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(ctl, args...)
		cmd.Dir, cmd.SysProcAttr = folder, attributes
		log, err := os.Create(filepath.Join(folder, "ctl.log")) // a file instead of a pipe: the server inherits it, and Wait would wait for the server
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("pg_ctl %v: %v\n%s", args, err, text)
		}
	}
	data := filepath.Join(folder, "data")
	run("initdb", "-D", data, "-o", "-U dunlin -A trust -E UTF8 --no-sync")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	_ = ln.Close()
	t.Cleanup(func() {
		cmd := exec.Command(ctl, "stop", "-D", data, "-m", "immediate")
		cmd.Dir, cmd.SysProcAttr = folder, attributes
		_ = cmd.Run()
	})
	run("start", "-w", "-D", data, "-l", filepath.Join(folder, "server.log"), "-o", "-p "+port+" -h 127.0.0.1 -k '' -c fsync=off")
	return "postgres://dunlin@127.0.0.1:" + port + "/postgres?sslmode=disable"
}

// missing skips a test, or fails it if DUNLIN_REQUIRE_ALL is set.
func missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
