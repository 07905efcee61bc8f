//go:build unix

package admission

import (
	"math"
	"syscall"
)

// DescriptorsForConnections returns the default limit of open connections: 95 % of the descriptors that the process may
// have. The others stay free for files, databases and other uses. It returns 0 if the number of descriptors is unknown.
func DescriptorsForConnections() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	most := uint64(limit.Cur)
	return max(int(min(most-most/20, math.MaxInt32)), 1)
}
