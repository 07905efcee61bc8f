package exchange

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// A Number stands for an identifier of a request: 26 digits in Crockford's base 32, of 128 bits that are the number under
// a key of the process. It takes the place of the text until somebody wants that: an answer that carries the
// identifier carries the number, and its digits are written into the output. They are unique for all purposes of
// tracing, but no secret. 0 is no number.
type Number uint64

const (
	idLength     = 26  // digits of five bits for 128
	numbersTaken = 256 // at once, by each Strings
)

var (
	numbersBegun atomic.Uint64 // pieces of numbers that were taken; they begin at 1, and a number fits a version
	idKey        = [4]uint64{rand.Uint64(), rand.Uint64() | 1, rand.Uint64(), rand.Uint64() | 1}
)

// number returns one that nobody else in the process has.
func (s *Strings) number() Number {
	if s.next%numbersTaken == 0 {
		s.next = Number(numbersBegun.Add(1) * numbersTaken & versionMask)
	}
	s.next++
	return s.next - 1
}

// An Identity is what identifies a request: a text that it was given, or a number. The zero value is none yet.
type Identity struct {
	text   string
	number Number // 0 or isVisible where the text was given
}

// isVisible stands where a number would, which is smaller, for a text that is known to be.
const isVisible Number = 1 << 63

// Named returns the identity that is a text; "" is none yet.
func Named(text string) Identity { return Identity{text: text} }

// NamedVisibly returns the identity with a text that consists of visible ASCII characters. ok is false for
// other texts, for "", and for one of more than most bytes.
func NamedVisibly(text string, most int) (id Identity, ok bool) {
	return Identity{text, isVisible}, text != "" && len(text) <= most && Visible(text)
}

// IsZero reports whether there is neither a text nor a number yet.
func (i *Identity) IsZero() bool { return i.text == "" && i.number == 0 }

// Number returns the number of the identity, and gives it one if it has none yet; 0 if the identity is a
// text.
func (i *Identity) Number(s *Strings) Number {
	if i.IsZero() {
		i.number = s.number()
	}
	return i.number &^ isVisible
}

// visible reports whether the text, which was given, has nothing but visible characters of ASCII.
func (i *Identity) visible() bool { return i.number == isVisible || Visible(i.text) }

// Short returns the identity, which gets a number where it has none yet, without the text where the number stands for it.
func (i *Identity) Short(s *Strings) Identity {
	if n := i.Number(s); n != 0 {
		return Identity{number: n}
	}
	return *i
}

// String returns the text of an identity that is a text or a number.
func (i Identity) String() string {
	if i.text != "" {
		return i.text
	}
	return i.number.String()
}

// Text returns the identity, which gets one where it has none yet.
func (i *Identity) Text(s *Strings) string {
	if i.text == "" {
		id := s.take(idLength)
		i.Number(s).put(id)
		i.text = view.String(id)
	}
	return i.text
}

// put writes the digits of the number to the beginning of id.
func (n Number) put(id []byte) {
	_ = id[idLength-1]
	a := (uint64(n) ^ idKey[0]) * idKey[1]
	a ^= a >> 32
	a *= idKey[3]
	a ^= a >> 29
	b := (a + idKey[2]) * idKey[3]
	b ^= b >> 32
	b = (b ^ uint64(n)) * idKey[1]
	b ^= b >> 29
	binary.LittleEndian.PutUint64(id[0:], digits(a))
	binary.LittleEndian.PutUint64(id[8:], digits(b))
	binary.LittleEndian.PutUint64(id[16:], digits(a>>40|b>>40<<24))
	id[24], id[25] = alphabet[b>>56&31], alphabet[b>>61]
}

// String returns the digits.
func (n Number) String() string {
	var id [idLength]byte
	n.put(id[:])
	return string(id[:])
}

// IDBlock returns a block with a field, of a canonical name, that is the digits of the answer's Number, for Answer.Identify,
// and those of another block, which has no such field. It panics when that has the name.
func IDBlock(name string, others *Block) *Block {
	if others.Has(name) {
		panic("dunlin: the header that says the ID, " + name + ", is among the others")
	}
	b := new(Block)
	b.Init()
	b.addID(name)
	for i := range others.Fields {
		b.addAll(&others.Fields[i])
	}
	return b
}

// Visible reports whether s has nothing but visible characters of ASCII.
func Visible(s string) bool {
	b := view.Bytes(s)
	if len(b) >= 8 {
		last := b[len(b)-8:]
		for ; len(b) > 8; b = b[8:] {
			if !visible8(binary.LittleEndian.Uint64(b)) {
				return false
			}
		}
		return visible8(binary.LittleEndian.Uint64(last))
	}
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// visible8 is Visible for eight bytes. Of those that are not visible, the lowest sets its upper bit in one of the three
// numbers: nothing is carried to it from below.
func visible8(n uint64) bool {
	const ones = 0x0101010101010101
	return (n|(n+ones)|(n-'!'*ones))&(0x80*ones) == 0
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
