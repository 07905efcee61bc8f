package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func sqliteFile(t *testing.T) string { return filepath.Join(t.TempDir(), "conduit.db") }

// postgres starts a PostgreSQL server with an empty database for the time of a test.
func postgres(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "conduit-postgres-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	as := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if as.Credential, err = account("postgres"); err != nil {
			missing(t, "PostgreSQL is not installed: "+err.Error())
		}
		if err := os.Chown(folder, int(as.Credential.Uid), int(as.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(installed(t, program), args...)
		cmd.Dir, cmd.SysProcAttr = folder, as
		return cmd
	}
	if out, err := command("initdb", "-D", folder, "-U", "conduit", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	ln.Close()
	server := command("postgres", "-D", folder, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGQUIT) // at once
		server.Wait()
	})
	address := "postgres://conduit@127.0.0.1:" + port + "/postgres?sslmode=disable"
	for deadline := time.Now().Add(30 * time.Second); ; {
		db, err := open(address)
		if err == nil {
			db.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // it is starting
	}
}

// installed finds a program of PostgreSQL, which Debian keeps outside of the PATH.
func installed(t *testing.T, program string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(found) == 0 {
		missing(t, "PostgreSQL is not installed (Debian: apt-get install postgresql)")
	}
	return found[len(found)-1]
}

func account(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}
