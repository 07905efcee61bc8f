//go:build unix

package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// ownAccount returns the attributes for processes that own folder. PostgreSQL refuses to run as root. So if the test runs as
// root, ownAccount gives the folder to the account postgres, and the processes run with that account.
func ownAccount(t testing.TB, folder string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		missing(t, "PostgreSQL does not run as root, and there is no account: "+err.Error())
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
