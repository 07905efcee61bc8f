package hpack

// readInt reads an integer with a prefix of the given number of bits (RFC 7541 §5.1). Its first byte is b[i]. end is the
// position after the integer.
func readInt(b []byte, i int, prefix uint) (n uint32, end int, p problem) {
	if i >= len(b) {
		return 0, i, truncated
	}
	most := uint32(1)<<prefix - 1
	n = uint32(b[i]) & most
	i++
	if n < most {
		return n, i, noProblem
	}
	return readLong(b, i, n)
}

// readLong reads the bytes that follow a prefix of ones. An integer may be padded with bytes that do not change its value.
// Eight bytes are sufficient for all valid integers.
func readLong(b []byte, i int, prefix uint32) (n uint32, end int, p problem) {
	sum := uint64(prefix)
	for shift := uint(0); shift < 56; shift += 7 {
		if i >= len(b) {
			return 0, i, truncated
		}
		c := b[i]
		i++
		sum += uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if sum > maxInt {
				return 0, i, integerTooLarge
			}
			return uint32(sum), i, noProblem
		}
	}
	return 0, i, integerTooLarge
}

// maxInt is the largest integer that is accepted. No length, index or size needs a larger one.
const maxInt = 1<<30 - 1

// appendInt appends n with a prefix of the given number of bits. first contains the bits before the prefix.
func appendInt(dst []byte, first byte, prefix uint, n uint32) []byte {
	most := uint32(1)<<prefix - 1
	if n < most {
		return append(dst, first|byte(n))
	}
	dst = append(dst, first|byte(most))
	n -= most
	for n >= 0x80 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}
