package gcpace

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// A MemoryLimit is a memory limit of the process and its source.
type MemoryLimit struct {
	Bytes  int64  // 0 without a limit
	Source string // "config", "cgroup v2", "cgroup v1", "GOMEMLIMIT" or "none"
}

// FindMemoryLimit returns the limit of the process: the configured one unless it is 0, otherwise the lowest of its
// control groups, otherwise GOMEMLIMIT (or the value passed to debug.SetMemoryLimit), otherwise none. root is the root
// file system.
func FindMemoryLimit(configured int64, root fs.ReadFileFS) MemoryLimit {
	if configured > 0 {
		return MemoryLimit{configured, "config"}
	}
	if l := cgroupLimit(root); l.Bytes > 0 {
		return l
	}
	if n := userLimit(); n < math.MaxInt64 {
		return MemoryLimit{n, "GOMEMLIMIT"}
	}
	return MemoryLimit{0, "none"}
}

// unlimited is the minimum value that a version 1 control group shows without a limit: the largest multiple of a page.
// No machine has as much memory.
const unlimited = 1 << 60

// cgroupLimit reads the limits of the process's control group and of all groups above it (cgroups(7)). A container
// often sees its own group as the root, although /proc shows the path on the host: then only the root exists.
func cgroupLimit(root fs.ReadFileFS) (limit MemoryLimit) {
	lines, err := root.ReadFile("proc/self/cgroup")
	if err != nil {
		return MemoryLimit{}
	}
	for line := range strings.Lines(string(lines)) {
		// hierarchy-ID:controllers:path
		id, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		controllers, cgroup, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case id == "0" && controllers == "":
			limit = tighter(limit, walkUp(root, "sys/fs/cgroup", cgroup, "memory.max"), "cgroup v2")
		case strings.Contains(","+controllers+",", ",memory,"):
			limit = tighter(limit, walkUp(root, "sys/fs/cgroup/memory", cgroup, "memory.limit_in_bytes"), "cgroup v1")
		}
	}
	return limit
}

func tighter(l MemoryLimit, bytes int64, source string) MemoryLimit {
	if bytes > 0 && (l.Bytes == 0 || bytes < l.Bytes) {
		return MemoryLimit{bytes, source}
	}
	return l
}

// walkUp returns the minimum of the numbers in the files of the given name, from a group up to the root of its
// hierarchy, or 0.
func walkUp(root fs.ReadFileFS, mount, cgroup, name string) (least int64) {
	cgroup = path.Clean("/" + cgroup)
	for {
		text, err := root.ReadFile(path.Join(mount, cgroup, name))
		if err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is not a number
			if err == nil && n > 0 && n < unlimited && (least == 0 || n < least) {
				least = n
			}
		}
		if cgroup == "/" {
			return least
		}
		cgroup = path.Dir(cgroup)
	}
}
