package router

import "math/bits"

// hashFactor spreads the bits of a word to the upper bits of the product. It is 2^64 divided by the golden ratio.
const hashFactor = 0x9E3779B97F4A7C15

// scanExact is the length in bytes up to which the results first and hash of scanSegment identify a segment among segments
// of the same length. They identify it because mixing a word into a hash loses no information about the word.
const scanExact = 16

// scanSegment reads the segment that begins at start, eight bytes at a time, up to the next slash or the end of the path. It
// returns the end of the segment, its first eight bytes (little endian, padded with zeros), and its hash.
func scanSegment(path string, start int) (end int, first, hash uint64) {
	if start+8 > len(path) {
		word, n := tail(path, start)
		if at := slashes(word); at != 0 {
			n = bits.TrailingZeros64(at) / 8
			word &= 1<<(n*8) - 1
		}
		return start + n, word, word * hashFactor
	}
	word := load(path, start)
	if at := slashes(word); at != 0 {
		n := bits.TrailingZeros64(at) / 8
		word &= 1<<(n*8) - 1
		return start + n, word, word * hashFactor
	}
	end, hash = scanOn(path, start+8, word)
	return end, word, hash
}

// scanOn continues scanSegment after the first eight bytes.
func scanOn(path string, pos int, first uint64) (end int, hash uint64) {
	hash = first
	for ; pos+8 <= len(path); pos += 8 {
		word := load(path, pos)
		if at := slashes(word); at != 0 {
			n := bits.TrailingZeros64(at) / 8
			return pos + n, mix(hash, word&(1<<(n*8)-1))
		}
		hash = mix(hash, word)
	}
	word, n := tail(path, pos)
	if at := slashes(word); at != 0 {
		n = bits.TrailingZeros64(at) / 8
		word &= 1<<(n*8) - 1
	}
	return pos + n, mix(hash, word)
}

// mix adds a word to a hash. It is invertible in either argument, because the factor is odd.
func mix(hash, word uint64) uint64 { return (bits.RotateLeft64(hash, 29) ^ word) * hashFactor }

// segmentEnd returns the end of the segment that begins at start.
func segmentEnd(path string, start int) int {
	for ; start+8 <= len(path); start += 8 {
		if at := slashes(load(path, start)); at != 0 {
			return start + bits.TrailingZeros64(at)/8
		}
	}
	word, n := tail(path, start)
	if at := slashes(word); at != 0 {
		n = bits.TrailingZeros64(at) / 8
	}
	return start + n
}

// slashes returns a word with the top bit set in the byte of the first slash, and possibly in later bytes.
func slashes(word uint64) uint64 {
	const low, high = 0x0101010101010101, 0x8080808080808080
	word ^= '/' * low
	return (word - low) &^ word & high
}

// load returns the eight bytes from i on, little endian. The compiler translates it to one instruction.
func load(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// tail returns the n < 8 bytes from i to the end of s, padded with zeros.
func tail(s string, i int) (word uint64, n int) {
	n = len(s) - i
	if len(s) >= 8 {
		return load(s, len(s)-8) >> (64 - 8*uint(n)), n
	}
	for j := len(s) - 1; j >= i; j-- {
		word = word<<8 | uint64(s[j])
	}
	return word, n
}
