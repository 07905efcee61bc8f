package exchange

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/dunlinhttp/dunlin/internal/view"
)

const idLength = 26 // digits of five bits for 128

// RandomID returns 128 random bits in Crockford's base 32: unique for all purposes of tracing, but no secret.
func (s *Strings) RandomID() string {
	id := s.take(idLength)
	a, b := rand.Uint64(), rand.Uint64()
	binary.LittleEndian.PutUint64(id[0:], digits(a))
	binary.LittleEndian.PutUint64(id[8:], digits(b))
	binary.LittleEndian.PutUint64(id[16:], digits(a>>40|b>>40<<24))
	id[24], id[25] = alphabet[b>>56&31], alphabet[b>>61]
	return view.String(id)
}

// alphabet is that of Crockford's base 32.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// digits returns the lower 40 bits of n as eight digits, the lowest in the lowest byte.
func digits(n uint64) uint64 {
	// Five bits in each byte.
	n = n&(1<<20-1) | n>>20&(1<<20-1)<<32
	n = n&0x000003ff000003ff | n&0x000ffc00000ffc00<<6
	n = n&0x001f001f001f001f | n&0x03e003e003e003e0<<3
	// In the alphabet letters begin at 10, and the four that are left out, i, l, o and u,
	// would come at 18, 20, 22 and 27.
	const ones = 0x0101010101010101
	from := func(least uint64) uint64 { return (n + (128-least)*ones) >> 7 & ones } // 1 in each byte of at least that
	return n + '0'*ones + from(10)*('a'-'0'-10) + from(18) + from(20) + from(22) + from(27)
}
