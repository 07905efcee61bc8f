package hpack

import (
	"encoding/binary"
	"slices"
	"sync"
)

// The Huffman code of RFC 7541 appendix B is canonical: codes of the same length are consecutive numbers in the order of
// their symbols, and follow the codes of smaller length. Therefore the lengths determine the codes.

// codeBits is the length of the code of each symbol, in bits. Symbol 256 represents the end of the string. Its code has 30
// bits, all of which are ones.
var codeBits = [257]uint8{
	13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
	28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
	6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
	5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
	13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
	15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
	6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
	20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
	24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
	22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
	21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
	26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
	19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
	20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
	26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
	30,
}

const (
	endSymbol = 256
	maxCode   = 30 // bits

	// quickBits is the number of bits that one lookup decodes, which are usually two letters. The table has 16 KiB.
	quickBits = 12
)

// A quick contains up to two symbols, whose codes are the next quickBits bits of a string.
//
//	second (8 bits) │ first (8) │ bits of both (8) │ symbols (8)
//
// It contains no symbols if the first code is longer than quickBits.
type quick uint32

func (q quick) symbols() int { return int(q & 0xff) }
func (q quick) bits() uint   { return uint(q >> 8 & 31) }

// huffman has the tables for decoding and encoding. They are made when the first Decoder or Encoder is initialized, because
// most programs do not need them.
var (
	huffman     *huffmanTables
	needHuffman sync.Once
)

func makeHuffman() { huffman = buildHuffman() }

type huffmanTables struct {
	quick   [1 << quickBits]quick
	codes   [257]uint32
	symbols [257]uint16         // symbols by code
	base    [maxCode + 1]uint32 // the codes of a length are at symbols[base+code] (modulo 2³²)
	beyond  [maxCode + 1]uint32 // for each length: the smallest number, left-aligned in 32 bits, that does not start with a code of at most this length
}

func buildHuffman() *huffmanTables {
	t := new(huffmanTables)
	code, at := uint32(0), 0
	for bits := uint(1); bits <= maxCode; bits++ {
		code <<= 1
		t.base[bits] = uint32(at) - code
		for s := range codeBits {
			if uint(codeBits[s]) == bits {
				t.codes[s] = code
				t.symbols[at] = uint16(s)
				code++
				at++
			}
		}
		t.beyond[bits] = code << (32 - bits) // 0 for the last length, because its last code is all ones
	}
	for w := range uint32(1 << quickBits) {
		first, bits1 := t.long(w << (32 - quickBits))
		if bits1 > quickBits {
			continue
		}
		q := quick(first)<<16 | quick(bits1)<<8 | 1
		second, bits2 := t.long(w << (32 - quickBits + bits1))
		if bits1+bits2 <= quickBits {
			q = quick(second)<<24 | quick(first)<<16 | quick(bits1+bits2)<<8 | 2
		}
		t.quick[w] = q
	}
	return t
}

// long returns the symbol whose code is at the beginning of word, and the length of the code.
func (t *huffmanTables) long(word uint32) (symbol uint16, bits uint) {
	bits = 5
	for bits < maxCode && word >= t.beyond[bits] {
		bits++
	}
	return t.symbols[t.base[bits]+word>>(32-bits)], bits
}

// appendDecoded appends the string whose Huffman code is src.
func appendDecoded(dst, src []byte) ([]byte, problem) {
	// The shortest code has 5 bits, and a lookup writes two bytes.
	dst = slices.Grow(dst, len(src)*8/5+2)
	out := dst[len(dst) : len(dst)+len(src)*8/5+2]
	t := huffman
	n, i := 0, 0
	var word uint64 // the next bits, left-aligned
	var bits uint   // number of bits that belong to the string
	for {
		if i+8 <= len(src) {
			word |= binary.BigEndian.Uint64(src[i:]) >> bits
			i += int((63 - bits) >> 3)
			bits |= 56
		} else {
			for bits <= 56 && i < len(src) {
				word |= uint64(src[i]) << (56 - bits)
				bits += 8
				i++
			}
			if bits < maxCode {
				break
			}
		}
		for bits >= maxCode {
			q := t.quick[word>>(64-quickBits)]
			if q.symbols() == 0 {
				symbol, used := t.long(uint32(word >> 32))
				if symbol == endSymbol {
					return dst, endOfString
				}
				out[n] = byte(symbol)
				n++
				word <<= used
				bits -= used
				continue
			}
			out[n], out[n+1] = byte(q>>16), byte(q>>24)
			n += q.symbols()
			word <<= q.bits()
			bits -= q.bits()
		}
	}
	// The remaining bits are fewer than the longest code has. They are padded with ones, which cannot complete a code,
	// because no shorter code consists of ones.
	word |= ^uint64(0) >> bits
	for bits >= 5 {
		symbol, used := t.long(uint32(word >> 32))
		if used > bits {
			break
		}
		out[n] = byte(symbol)
		n++
		word = word<<used | (1<<used - 1)
		bits -= used
	}
	switch {
	case word != ^uint64(0):
		return dst, paddingNotOnes
	case bits > 7:
		return dst, paddingTooLong
	}
	return dst[:len(dst)+n], noProblem
}

// codedLen returns the length of the Huffman code of s, in bytes.
func codedLen(s string) int {
	bits := 0
	for i := range len(s) {
		bits += int(codeBits[s[i]])
	}
	return (bits + 7) / 8
}

// appendCoded appends the Huffman code of s.
func appendCoded(dst []byte, s string) []byte {
	t := huffman
	var word uint64
	var bits uint
	for i := range len(s) {
		c := s[i]
		n := uint(codeBits[c])
		word = word<<n | uint64(t.codes[c])
		bits += n
		if bits >= 32 {
			bits -= 32
			dst = binary.BigEndian.AppendUint32(dst, uint32(word>>bits))
		}
	}
	if pad := -bits & 7; pad != 0 {
		word = word<<pad | (1<<pad - 1)
		bits += pad
	}
	for bits > 0 {
		bits -= 8
		dst = append(dst, byte(word>>bits))
	}
	return dst
}
