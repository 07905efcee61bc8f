//go:build linux && race

package engine

import "syscall"

// The race detector knows that what was written to a descriptor happened before what
// is read: the Read and Write of package syscall, which package net uses, tell it so.
// The raw calls of the hot path do not. In race builds the same functions are called
// beside them, for no bytes: a client and a server in one process, as in most tests,
// are then as ordered by their messages as they are on net/http.

// afterRead says that fd, which is open, was read from.
func afterRead(fd int32) { _, _ = syscall.Read(int(fd), nil) }

// beforeWrite says that a descriptor is going to be written to. It names none, so
// nothing but that happens.
func beforeWrite() { _, _ = syscall.Write(-1, nil) }
