//go:build !windows

package files

import "syscall"

// badNames is what open(2) says of a name that no file can have: it goes on below a
// file, is too long, goes around in symbolic links, or has a NUL.
var badNames = []syscall.Errno{syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL}
