package gcpace_test

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/dunlinhttp/dunlin/internal/gcpace"
)

func TestFindLimit(t *testing.T) {
	const (
		v2 = "0::/kube/pod7\n"
		v1 = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n"
	)
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, test := range map[string]struct {
		configured int64
		files      fstest.MapFS
		want       gcpace.MemoryLimit
	}{
		"no groups at all": {0, fstest.MapFS{}, gcpace.MemoryLimit{Source: "none"}},
		"configured goes first": {5, fstest.MapFS{"proc/self/cgroup": file(v2), "sys/fs/cgroup/kube/pod7/memory.max": file("7\n")},
			gcpace.MemoryLimit{Bytes: 5, Source: "config"}},
		"v2": {0, fstest.MapFS{"proc/self/cgroup": file(v2), "sys/fs/cgroup/kube/pod7/memory.max": file("33554432\n")},
			gcpace.MemoryLimit{Bytes: 32 << 20, Source: "cgroup v2"}},
		"v2, the group above is tighter": {0, fstest.MapFS{"proc/self/cgroup": file(v2),
			"sys/fs/cgroup/kube/pod7/memory.max": file("max\n"), "sys/fs/cgroup/kube/memory.max": file("4096\n")},
			gcpace.MemoryLimit{Bytes: 4096, Source: "cgroup v2"}},
		"v2, seen from inside": {0, fstest.MapFS{"proc/self/cgroup": file(v2), "sys/fs/cgroup/memory.max": file("8192\n")},
			gcpace.MemoryLimit{Bytes: 8192, Source: "cgroup v2"}},
		"v2 without a limit": {0, fstest.MapFS{"proc/self/cgroup": file(v2), "sys/fs/cgroup/memory.max": file("max\n")},
			gcpace.MemoryLimit{Source: "none"}},
		"v1": {0, fstest.MapFS{"proc/self/cgroup": file(v1), "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": file("65536\n")},
			gcpace.MemoryLimit{Bytes: 65536, Source: "cgroup v1"}},
		"v1 without a limit": {0, fstest.MapFS{"proc/self/cgroup": file(v1), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")},
			gcpace.MemoryLimit{Source: "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gcpace.FindMemoryLimit(test.configured, test.files); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestFindLimitOfTheRuntime(t *testing.T) {
	old := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(old)
	if got := gcpace.FindMemoryLimit(0, fstest.MapFS{}); got != (gcpace.MemoryLimit{Bytes: 1 << 30, Source: "GOMEMLIMIT"}) {
		t.Errorf("got %+v", got)
	}
	if old != math.MaxInt64 {
		t.Logf("the tests run with GOMEMLIMIT %d", old)
	}
}
