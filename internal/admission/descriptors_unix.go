//go:build unix

package admission

import (
	"math"
	"syscall"
)

// DescriptorsForConnections returns how many connections leave one in twenty of the descriptors that the process may have to
// files, databases and all else of the program; 0 if that is not known.
func DescriptorsForConnections() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	most := uint64(limit.Cur)
	return max(int(min(most-most/20, math.MaxInt32)), 1)
}
