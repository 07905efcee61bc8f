//go:build linux

package lowmem

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/gcpace"
)

func TestMapped(t *testing.T) {
	const maps = `00400000-007e8000 r-xp 00000000 fe:00 1                  /usr/bin/users
00c20000-00c80000 rw-p 00820000 fe:00 1                  /usr/bin/users
70000000-70200000 r--p 00000000 00:00 0
70200000-70300000 r--s 00000000 fe:00 1                  /usr/bin/users
70300000-70400000 r-xp 00000000 fe:00 2                  /usr/lib/library
70500000-70600000 r--p 00000000 fe:00 1                  /usr/bin/users
7ffd1000-7ffd2000 r-xp 00000000 00:00 0                  [vdso]
zz-80000000 r-xp 00000000 fe:00 1                        /usr/bin/users
80000000-80000000 r-xp 00000000 fe:00 1                  /usr/bin/users
81000000-82000000 r-xp 00000000 fe:00 1                  /usr/bin/users2
82000000-83000000 r-xp 00000000`
	for file, maps := range map[string]string{
		"/usr/bin/users":            maps,
		"/usr/bin/a name (deleted)": strings.ReplaceAll(maps, "/usr/bin/users", "/usr/bin/a name (deleted)"),
	} {
		want := []mapping{{0x00400000, 0x007e8000}, {0x70500000, 0x70600000}}
		if got := mapped([]byte(maps), file); !slices.Equal(got, want) {
			t.Errorf("%s: mappings %x, want %x", file, got, want)
		}
	}
}

// TestChangedMappingIsFound maps a file of many pages and changes one of them, as a debugger does.
func TestChangedMappingIsFound(t *testing.T) {
	const pages = 700 // more than one call queries
	size := os.Getpagesize()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, bytes.Repeat([]byte("text"), pages*size/4), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pagemap, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("the memory mappings are not available: %v", err)
	}
	defer unix.Close(pagemap)
	for _, changed := range []int{-1, 0, 600, pages - 1} {
		text, err := unix.Mmap(int(f.Fd()), 0, pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		read := byte(0)
		for i := 0; i < len(text); i += size {
			read |= text[i]
		}
		if changed >= 0 {
			text[changed*size] = read + 1
		}
		from := uintptr(unsafe.Pointer(unsafe.SliceData(text)))
		m := mapping{from: from, to: from + uintptr(len(text))}
		if got := m.unchanged(pagemap); got != (changed < 0) {
			t.Errorf("page %d changed: unchanged = %v", changed, got)
		}
		if err := unix.Munmap(text); err != nil {
			t.Fatal(err)
		}
	}
	for entry, own := range map[uint64]bool{
		0: false, pagePresent | pageOfFile: false, pagePresent: true, pageSwapped: true, pageSwapped | pageOfFile: true,
	} {
		if ownCopy(entry) != own {
			t.Errorf("entry %x: own copy %v, want %v", entry, !own, own)
		}
	}
}

func TestDroppedProgramRunsOn(t *testing.T) {
	before := gcpace.ProgramBytes()
	if before == 0 {
		t.Skip("the memory of mapped files is not available")
	}
	DropProgram()
	after := gcpace.ProgramBytes()
	t.Logf("%d bytes of the program before, %d after", before, after)
	if after >= before {
		t.Errorf("got %d bytes of the program in memory, %d before", after, before)
	}
}

func BenchmarkDropProgram(b *testing.B) {
	for b.Loop() {
		DropProgram()
	}
}

// TestDroppedComesBackInPieces reads one page of a dropped file, which loads a piece of the file.
func TestDroppedPagesReturnInPieces(t *testing.T) {
	const size = 64 * faultPiece
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(text)
	present := func() (bytes int) {
		pages := make([]byte, 8*size/os.Getpagesize())
		pagemap, err := os.Open("/proc/self/pagemap")
		if err != nil {
			t.Skipf("the memory mappings are not available: %v", err)
		}
		defer pagemap.Close()
		at := uintptr(unsafe.Pointer(unsafe.SliceData(text))) / uintptr(os.Getpagesize())
		if _, err := pagemap.ReadAt(pages, int64(at)*8); err != nil {
			t.Fatal(err)
		}
		for ; len(pages) > 0; pages = pages[8:] {
			if binary.NativeEndian.Uint64(pages)&pagePresent != 0 {
				bytes += os.Getpagesize()
			}
		}
		return bytes
	}
	read := byte(0)
	for i := 0; i < size; i += os.Getpagesize() {
		read |= text[i]
	}
	if n := present(); n != size {
		t.Fatalf("got %d of %d bytes mapped", n, size)
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(text)))
	m := mapping{from, from + size}
	for range 2 { // also the parts that were split before
		m.cut()
		m.advise(unix.MADV_DONTNEED)
		if n := present(); n != 0 {
			t.Fatalf("got %d mapped bytes of the dropped pages", n)
		}
		for i := 0; i < size; i += size / 4 {
			read |= text[i+faultPiece/2]
		}
		if n := present(); n < 4*os.Getpagesize() || n > 4*max(faultPiece, os.Getpagesize()) {
			t.Errorf("got %d mapped bytes after a read of four bytes", n)
		}
	}
	if read != 0 {
		t.Error("the content of the file has changed")
	}
}
