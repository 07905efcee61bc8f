//go:build linux

package admission

import (
	"slices"
	"strings"
	"testing"
)

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-007e8000 r-xp 00000000 fe:00 1 /usr/bin/users
Rss:                3680 kB
Private_Dirty:      3680 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
007e8000-00c20000 r--p 003e8000 fe:00 1 /usr/bin/users
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd mr mw me
00c20000-00c80000 rw-p 00820000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
VmFlags: rd wr mr mw me
70000000-70200000 r--p 00000000 00:00 0
Anonymous:             0 kB
VmFlags: rd mr mw me
70200000-70300000 r--s 00000000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
VmFlags: rd mr mw me
70300000-70400000 r-xp 00000000 fe:00 2 /usr/lib/library
Anonymous:             0 kB
VmFlags: rd mr mw me
70500000-70600000 r--p 00000000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
70600000-70700000 r-xp 00100000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
Swap:                  8 kB
VmFlags: rd mr mw me
70800000-70a00000 r-xp 00000000 00:0f 6 /usr/bin/users
Anonymous:             0 kB
Swap:                  0 kB
Private_Hugetlb:    2048 kB
VmFlags: rd ex mr mw me de ht
7ffd1000-7ffd2000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
VmFlags: rd ex mr mw me
zz-80000000 r-xp 00000000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
VmFlags: rd ex mr mw me
81000000-82000000 r-xp 00000000 fe:00 1 /usr/bin/users
Anonymous:             0 kB
`
	for file, smaps := range map[string]string{
		"/usr/bin/users":            smaps,
		"/usr/bin/a name (deleted)": strings.ReplaceAll(smaps, "/usr/bin/users", "/usr/bin/a name (deleted)"),
	} {
		want := []mapping{{0x00400000, 0x007e8000}, {0x70500000, 0x70600000}}
		if got := unchanged(strings.NewReader(smaps), file); !slices.Equal(got, want) {
			t.Errorf("%s: mappings %x, want %x", file, got, want)
		}
	}
}

func TestDroppedProgramRunsOn(t *testing.T) {
	before := ProgramBytes()
	if before == 0 {
		t.Skip("the system does not say how much memory files take")
	}
	DropProgram()
	after := ProgramBytes()
	t.Logf("%d bytes of the program before, %d after", before, after)
	if after >= before {
		t.Errorf("%d bytes of the program in memory, %d before", after, before)
	}
}
