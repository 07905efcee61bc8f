//go:build linux && race

package engine

import "syscall"

// The race detector must know that data written to a descriptor happened before the same data is read. The functions Read and
// Write of package syscall, which package net uses, tell it so. The raw calls of the hot path do not. So race builds also call
// these functions, with no bytes. In most tests client and server are in one process: their messages then order them as with
// net/http.

// afterRead informs the race detector of a read from fd, which must be open.
func afterRead(fd int32) { _, _ = syscall.Read(int(fd), nil) }

// beforeWrite informs the race detector of a write. The call has no other effect, because -1 is not a descriptor.
func beforeWrite() { _, _ = syscall.Write(-1, nil) }
