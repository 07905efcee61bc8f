//go:build linux && race

package engine

import "syscall"

// The race detector must know that data written to a descriptor happened before the same data is read. The functions Read and
// Write of package syscall, which package net uses, tell it so. The raw calls of the hot path do not. So race builds also call
// these functions, with no bytes. In most tests client and server are in one process: their messages then order them as with
// net/http.

// afterRead tells the race detector that fd, which is open, was read.
func afterRead(fd int32) { _, _ = syscall.Read(int(fd), nil) }

// beforeWrite tells the race detector that a descriptor will be written. It names none, so the call has no other effect.
func beforeWrite() { _, _ = syscall.Write(-1, nil) }
