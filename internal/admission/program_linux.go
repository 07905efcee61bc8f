package admission

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// DropProgram takes out of the process's memory what it has mapped of its own program.
// What goes on being used comes back by itself from the system's cache, at a fault for
// every 16 KB; what only the start has needed, nearly half, stays away, as does what
// only a burst has. It does nothing where the system does not let it. Libraries stay: one
// may be loaded just now, which changes it.
func DropProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range unchanged(program) {
		m.cut()
		m.advise(unix.MADV_DONTNEED)
	}
}

// faultPiece is how much of the program comes back at a fault, in bytes, and stays for a byte of it that
// is used. By itself the system maps what it has cached of the 64 KB around the page that is asked for,
// which was 6 MB of a program of which 2 MB were used. In smaller pieces still less would come back, but each
// costs the system some 200 bytes.
const faultPiece = 16 << 10

// cut has a fault in the mapping map no more than faultPiece. What the system maps with a page ends where the mapping
// does, and mappings that follow each other are one unless they differ. So every other piece is given a
// mark that changes nothing else: core dumps have no pages of a file that nobody has written, anyway. The first
// piece, whose page with the file's own header they may have, is left as it is.
func (m mapping) cut() {
	if m.to-m.from <= faultPiece {
		return // it was cut before
	}
	for from := m.from&^(faultPiece-1) + faultPiece; from < m.to; from += 2 * faultPiece {
		mapping{from, min(from+faultPiece, m.to)}.advise(unix.MADV_DONTDUMP)
	}
}

// advise tells the system what becomes of the mapping (madvise(2)). An error leaves it as it was.
func (m mapping) advise(advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice)
}

// unchanged returns the mappings of a file that can be dropped and read again: private ones that nobody may write, and of
// which no page is the process's own copy, as those are that a linker or a debugger has changed.
func unchanged(file string) []mapping {
	maps, err := fs.ReadFile(KernelFiles(), "proc/self/maps")
	if err != nil {
		return nil
	}
	// Not smaps, which says the same: for that the system walks all memory of the process, while nobody else of it can
	// map any. A program that has capabilities by its file may not open pagemap.
	pages, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unchangedBySmaps(file)
	}
	defer unix.Close(pages)
	return slices.DeleteFunc(mapped(maps, file), func(m mapping) bool { return !m.unchanged(pages) })
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// mapped returns the mappings of a file in maps (proc_pid_maps(5)) that are private and that nobody may write.
func mapped(maps []byte, file string) (all []mapping) {
	for line := range bytes.Lines(maps) { // address perms offset dev inode path; some hundreds are pieces that were cut
		addresses, rest, _ := bytes.Cut(line, []byte{' '})
		if !isMappingOf(file, rest) {
			continue
		}
		if m := parseMapping(addresses); m.to > m.from {
			all = append(all, m)
		}
	}
	return all
}

// isMappingOf reports whether what maps says behind the addresses of a mapping is that it is one of a file, private, and that nobody may
// write it.
func isMappingOf(file string, said []byte) bool {
	perms, rest, _ := bytes.Cut(said, []byte{' '})
	if string(perms) != "r--p" && string(perms) != "r-xp" {
		return false
	}
	for range 3 { // offset, device, inode
		_, rest, _ = bytes.Cut(rest, []byte{' '})
	}
	return string(bytes.TrimSpace(rest)) == file
}

// What pagemap says of a page (proc_pid_pagemap(5)). One that is present and not the file's is the process's own copy.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// unchanged reports that no page is the process's own copy.
func (m mapping) unchanged(pagemap int) bool {
	var entries [512 * 8]byte
	size := uintptr(os.Getpagesize())
	for page, end := m.from/size, m.to/size; page < end; {
		some := entries[:min(uintptr(len(entries)), (end-page)*8)]
		n, err := unix.Pread(pagemap, some, int64(page)*8)
		if err != nil || n < 8 {
			return false
		}
		for some = some[:n&^7]; len(some) > 0; some = some[8:] {
			if ownCopy(binary.NativeEndian.Uint64(some)) {
				return false
			}
			page++
		}
	}
	return true
}

func ownCopy(entry uint64) bool {
	return entry&pageSwapped != 0 || entry&pagePresent != 0 && entry&pageOfFile == 0
}

// parseMapping parses from-to, in hexadecimal. What it does not understand is empty.
func parseMapping(addresses []byte) (m mapping) {
	at := &m.from
	for _, c := range addresses {
		switch {
		case c >= '0' && c <= '9':
			*at = *at<<4 | uintptr(c-'0')
		case c >= 'a' && c <= 'f':
			*at = *at<<4 | uintptr(c-'a'+10)
		case c == '-' && at == &m.from:
			at = &m.to
		default:
			return mapping{}
		}
	}
	return m
}
