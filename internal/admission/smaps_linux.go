package admission

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
)

// unchangedBySmaps returns what mapped does, without what the process has a copy of. The system walks all memory of the
// process for it.
func unchangedBySmaps(file string) []mapping {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer f.Close()
	return unchangedIn(f, file)
}

// unchangedIn returns the mappings of a file in smaps (proc_pid_smaps(5)) that can be
// dropped and read again: private ones that nobody may write, and of which no page is the
// process's own copy, as those are that a linker or a debugger has changed. Huge pages (ht)
// do not say whether they are.
func unchangedIn(smaps io.Reader, file string) (all []mapping) {
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
			if isMappingOf(file, rest) {
				m = parseMapping(first)
			}
		}
	}
	return all
}
