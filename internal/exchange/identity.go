package exchange

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/textproto"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// A Number represents an identifier of a request. The identifier is the number, scrambled to 128 bits with a random key of the
// process, as 26 digits in Crockford's base 32. An answer stores only the number, and the digits are written directly into the
// output. A string is made only if application code uses the identifier. Identifiers are unique for all purposes of tracing, but
// they are not secret. 0 means no number.
type Number uint64

const (
	idLength     = 26  // digits of five bits for 128 bits
	numbersTaken = 256 // numbers that a Strings reserves at once
)

var (
	numbersBegun atomic.Uint64 // blocks of reserved numbers; they begin at 1, and a number fits into a version
	idKey        = [4]uint64{rand.Uint64(), rand.Uint64() | 1, rand.Uint64(), rand.Uint64() | 1}
)

// number returns a number that is unique in the process.
func (s *Strings) number() Number {
	if s.next%numbersTaken == 0 {
		s.next = Number(numbersBegun.Add(1) * numbersTaken & versionMask)
	}
	s.next++
	return s.next - 1
}

// An Identity identifies a request: a given text, or a number. The zero value means none yet.
type Identity struct {
	text   string
	number Number // 0 or isVisible if text was given
}

// isVisible is the number in an Identity whose text is known to have only visible characters. All other numbers are smaller.
const isVisible Number = 1 << 63

// Named returns the identity with a text. With "" it returns the zero value.
func Named(text string) Identity { return Identity{text: text} }

// NamedVisibly returns the identity with a text of visible ASCII characters. ok is false for other texts, for "", and for texts
// of more than limit bytes.
func NamedVisibly(text string, limit int) (id Identity, ok bool) {
	return Identity{text, isVisible}, text != "" && len(text) <= limit && Visible(text)
}

// IsZero reports whether the identity has neither a text nor a number yet.
func (i *Identity) IsZero() bool { return i.text == "" && i.number == 0 }

// Number returns the number of the identity. A zero identity gets a number first. For an identity with a given text, the result
// is 0.
func (i *Identity) Number(s *Strings) Number {
	if i.IsZero() {
		i.number = s.number()
	}
	return i.number &^ isVisible
}

// visible reports whether the given text has only visible ASCII characters.
func (i *Identity) visible() bool { return i.number == isVisible || Visible(i.text) }

// Short returns the identity. If it has a number, the result does not have the text that Text has made of it. A zero identity
// gets a number first.
func (i *Identity) Short(s *Strings) Identity {
	if n := i.Number(s); n != 0 {
		return Identity{number: n}
	}
	return *i
}

// String returns the text, made from the number if necessary.
func (i Identity) String() string {
	if i.text != "" {
		return i.text
	}
	return i.number.String()
}

// Text returns the text of the identity, and stores it. A zero identity gets a number first.
func (i *Identity) Text(s *Strings) string {
	if i.text == "" {
		id := s.alloc(idLength)
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

// An IDHeader is a field with the identifier of a request as its value, and constant fields that are sent with it.
type IDHeader struct {
	Block  *Block // the field, and Others
	Others *Block
}

// NewIDHeader returns an IDHeader for the named field and for pairs, alternating names and values.
func NewIDHeader(name string, pairs ...string) (*IDHeader, error) {
	if err := CheckField(name, ""); err != nil {
		return nil, err
	}
	h := &IDHeader{new(Block), new(Block)}
	h.Block.Init()
	h.Others.Init()
	if err := h.Others.AddPairs(pairs); err != nil {
		return nil, err
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	if h.Others.Has(name) {
		return nil, errors.New("the header of the ID, " + name + ", is among the others")
	}
	h.Block.addID(name)
	for i := range h.Others.Fields {
		h.Block.addAll(&h.Others.Fields[i])
	}
	return h, nil
}

// Name returns the name of the field with the ID.
func (h *IDHeader) Name() string { return h.Block.Fields[0].Name }

// Visible reports whether s has only visible ASCII characters.
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

// visible8 is Visible for eight bytes. If a byte is not visible, one of the three numbers has the high bit of the lowest such
// byte set, because no carry reaches that byte.
func visible8(n uint64) bool {
	const ones = 0x0101010101010101
	return (n|(n+ones)|(n-'!'*ones))&(0x80*ones) == 0
}

// alphabet is the alphabet of Crockford's base 32.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// digits returns the lower 40 bits of n as eight digits, the lowest in the lowest byte.
func digits(n uint64) uint64 {
	// Five bits in each byte.
	n = n&(1<<20-1) | n>>20&(1<<20-1)<<32
	n = n&0x000003ff000003ff | n&0x000ffc00000ffc00<<6
	n = n&0x001f001f001f001f | n&0x03e003e003e003e0<<3
	// In the alphabet letters begin at 10. The omitted letters i, l, o and u would be at 18, 20, 22 and 27.
	const ones = 0x0101010101010101
	from := func(least uint64) uint64 { return (n + (128-least)*ones) >> 7 & ones } // 1 in each byte that is at least least
	return n + '0'*ones + from(10)*('a'-'0'-10) + from(18) + from(20) + from(22) + from(27)
}
