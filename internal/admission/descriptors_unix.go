//go:build unix

package admission

import (
	"math"
	"syscall"
)

// DescriptorsForConnections returns the number of connections that leave one in twenty of the process's descriptors to files,
// databases and other uses of the program; 0 if the limit is unknown.
func DescriptorsForConnections() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	most := uint64(limit.Cur)
	return max(int(min(most-most/20, math.MaxInt32)), 1)
}
