package gcpace

import (
	"testing"
	"testing/fstest"
)

func TestFindLimit(t *testing.T) {
	cgroup := func(max string) fstest.MapFS {
		return fstest.MapFS{
			"proc/self/cgroup":                 {Data: []byte("0::/service\n")},
			"sys/fs/cgroup/service/memory.max": {Data: []byte(max + "\n")},
		}
	}
	const mb = 1 << 20
	for _, test := range []struct {
		name       string
		configured int64
		root       fstest.MapFS
		want       MemoryLimit
	}{
		{"configured, no group", 32 * mb, nil, MemoryLimit{Bytes: 32 * mb, Source: "config"}},
		{"configured, an unlimited group", 32 * mb, cgroup("max"), MemoryLimit{Bytes: 32 * mb, Source: "config"}},
		{"a group with room for it and the kernel", 32 * mb, cgroup("50331648"), MemoryLimit{Bytes: 32 * mb, Source: "config"}},
		{"a group of the same size", 32 * mb, cgroup("33554432"), MemoryLimit{Bytes: 32 * mb, Source: "cgroup v2"}},
		{"a large group that leaves 64 MB to the kernel", 1000 * mb, cgroup("1073741824"), MemoryLimit{Bytes: 1024 * mb, Source: "cgroup v2"}},
		{"nothing configured", 0, cgroup("33554432"), MemoryLimit{Bytes: 32 * mb, Source: "cgroup v2"}},
	} {
		if got := findLimit(test.configured, test.root); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
