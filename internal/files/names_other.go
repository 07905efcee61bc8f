//go:build !windows

package files

import "syscall"

// badNames are the errors of open(2) for an invalid name: an element below a file, a name that is too long, a loop of
// symbolic links, or a NUL.
var badNames = []syscall.Errno{syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL}
