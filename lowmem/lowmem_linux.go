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

// faultPiece is the number of bytes of the program that a page fault maps. By default the kernel maps the cached part of
// the 64 KB around the page: a program that used 2 MB had 6 MB mapped. With smaller pieces a fault would map less, but
// each piece costs the kernel about 200 bytes.
const faultPiece = 16 << 10

// cut limits the pages that a fault maps to faultPiece. A fault maps pages of one mapping only, and the kernel merges
// adjacent mappings unless they differ. So cut marks every second piece with MADV_DONTDUMP. The mark has no other effect,
// because core dumps contain no unmodified file pages anyway. The first piece is not marked, since a core dump may need
// its page with the file's header.
func (m mapping) cut() {
	if m.to-m.from <= faultPiece {
		return // an earlier call has cut the mapping
	}
	for from := m.from&^(faultPiece-1) + faultPiece; from < m.to; from += 2 * faultPiece {
		mapping{from, min(from+faultPiece, m.to)}.advise(unix.MADV_DONTDUMP)
	}
}

// advise calls madvise(2) for the mapping. On error the mapping is unchanged.
func (m mapping) advise(advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice)
}

// unchanged returns the mappings of a file that can be dropped and read again: private read-only mappings without pages
// that the process has modified, for example by a linker or a debugger. A program with file capabilities cannot open
// pagemap; for it, unchanged returns nothing.
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
	for line := range bytes.Lines(maps) { // address perms offset dev inode path
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

// isMappingOf reports whether a line of maps, after its addresses, describes a private read-only mapping of the file.
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

// These are the bits of a page in pagemap (proc_pid_pagemap(5)). A present page that does not belong to the file is the
// process's own, modified copy.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// unchanged reports whether no page of the mapping is the process's own copy.
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

// parseMapping parses from-to, in hexadecimal. It returns an empty mapping for other text.
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
