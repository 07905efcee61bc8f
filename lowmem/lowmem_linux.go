package lowmem

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func dropProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range unchanged(program) {
		m.cut()
		m.advise(unix.MADV_DONTNEED)
	}
}

// faultPiece is how much of the program comes back at a fault, in bytes. By itself the system maps the cached part of the
// 64 KB around the page, which was 6 MB of a program that used 2 MB. Smaller pieces would bring back less, but each costs the
// system some 200 bytes.
const faultPiece = 16 << 10

// cut makes a fault in the mapping map no more than faultPiece. A fault maps pages of one mapping only, and adjacent
// mappings are merged unless they differ. So every other piece gets a mark that changes nothing else: core dumps have no unwritten
// pages of a file anyway. The first piece is left as it is, since they may have its page with the file's header.
func (m mapping) cut() {
	if m.to-m.from <= faultPiece {
		return // it was cut before
	}
	for from := m.from&^(faultPiece-1) + faultPiece; from < m.to; from += 2 * faultPiece {
		mapping{from, min(from+faultPiece, m.to)}.advise(unix.MADV_DONTDUMP)
	}
}

// advise calls madvise(2) for the mapping. An error leaves it as it was.
func (m mapping) advise(advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice)
}

// unchanged returns the mappings of a file that can be dropped and read again: private read-only ones without a page that is the
// process's own copy, such as one that a linker or a debugger has changed. A program that has capabilities by its file
// may not open pagemap, and drops nothing.
func unchanged(file string) []mapping {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	pages, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(pages)
	return slices.DeleteFunc(mapped(maps, file), func(m mapping) bool { return !m.unchanged(pages) })
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// mapped returns the private read-only mappings of a file in maps (proc_pid_maps(5)).
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

// isMappingOf reports whether a line of maps, after its addresses, is that of a private read-only mapping of a file.
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

// The bits of a page in pagemap (proc_pid_pagemap(5)). A page that is present and not the file's is the process's own copy.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// unchanged reports whether no page is the process's own copy.
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

// parseMapping parses from-to, in hexadecimal. The result of anything else is empty.
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
