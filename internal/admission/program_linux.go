package admission

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DropProgram takes out of the process's memory what it has mapped of its own program.
// What goes on being used comes back by itself from the system's cache, at a fault for
// every 64 KB; what only the start has needed, a quarter or so, stays away, as does what
// only a burst has. It does nothing where the system does not let it. Libraries stay: one
// may be loaded just now, which changes it.
func DropProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range unchanged(f, program) {
		// An error leaves the mapping as it was.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged returns the mappings of a file in smaps (proc_pid_smaps(5)) that can be
// dropped and read again: private ones that nobody may write, and of which no page is the
// process's own copy, as those are that a linker or a debugger has changed. Huge pages (ht)
// do not say whether they are.
func unchanged(smaps io.Reader, file string) (all []mapping) {
	lines := bufio.NewScanner(smaps)
	var m mapping // of which the lines speak; nothing when it cannot be dropped
	for lines.Scan() {
		line := lines.Bytes()
		first, rest, _ := bytes.Cut(line, []byte(" "))
		switch {
		case string(first) == "Anonymous:" || string(first) == "Swap:":
			if !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("0 ")) {
				m = mapping{}
			}
		case string(first) == "VmFlags:": // the last line of each
			if m.to > m.from && !slices.Contains(strings.Fields(string(rest)), "ht") {
				all = append(all, m)
			}
			m = mapping{}
		case bytes.IndexByte(first, '-') > 0: // address perms offset dev inode path
			m = mapping{}
			if !bytes.HasPrefix(rest, []byte("r--p ")) && !bytes.HasPrefix(rest, []byte("r-xp ")) {
				continue
			}
			if fields := strings.Fields(string(rest)); len(fields) >= 5 && strings.Join(fields[4:], " ") == file {
				m = parseMapping(string(first))
			}
		}
	}
	return all
}

// parseMapping parses from-to, in hexadecimal. What it does not understand is empty.
func parseMapping(s string) mapping {
	from, to, _ := strings.Cut(s, "-")
	a, errA := strconv.ParseUint(from, 16, strconv.IntSize)
	b, errB := strconv.ParseUint(to, 16, strconv.IntSize)
	if errA != nil || errB != nil {
		return mapping{}
	}
	return mapping{from: uintptr(a), to: uintptr(b)}
}
