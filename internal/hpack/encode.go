package hpack

import (
	"encoding/binary"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// An Encoder encodes all blocks of one direction of a connection, in the order in which they are sent. Only one goroutine may
// use it at a time. The zero value is not ready for use, see Init.
//
// A field enters the dynamic table when it is sent for the second time. The encoder detects this with a small set of hashes.
// Therefore a field that is sent only once, such as a request ID, does not evict other fields.
type Encoder struct {
	table  table
	most   uint32     // maximum size of the table, even if the peer allows more
	least  uint32     // smallest size of the table since the last block
	told   bool       // the peer has been informed of the size of the table
	oldest uint8      // index of the oldest entry of seen, which is a ring
	seen   [24]uint16 // hashes of fields that were sent recently and did not enter the table
}

// Init prepares the encoder for a connection. most is the maximum size of the dynamic table, in bytes as in RFC 7541 §4.1.
// The peer may allow less.
func (e *Encoder) Init(most uint32) {
	needHuffman.Do(makeHuffman)
	*e = Encoder{most: min(most, MaxTableSize)}
	e.table.max = min(e.most, DefaultTableSize)
	e.least = e.table.max
	e.told = e.table.max == DefaultTableSize
}

// SetAllowed applies the peer's setting SETTINGS_HEADER_TABLE_SIZE.
func (e *Encoder) SetAllowed(size uint32) {
	size = min(size, e.most)
	if size == e.table.max {
		return
	}
	e.table.setMax(size)
	e.least = min(e.least, size)
	e.told = false
}

// Footprint returns the memory of the dynamic table, in bytes.
func (e *Encoder) Footprint() int { return e.table.footprint() }

// Rest releases all memory and empties the table. The next block informs the peer.
func (e *Encoder) Rest() {
	size := e.table.max
	if e.table.count > 0 {
		e.least, e.told = 0, false
	}
	e.table.setMax(0)
	e.table.max = size
}

// Begin must be called at the start of each block. It appends the size updates that are pending (RFC 7541 §4.2). If two are
// necessary, the first one is to 0, because some decoders (golang.org/x/net) accept a second update only if the table is
// empty.
func (e *Encoder) Begin(dst []byte) []byte {
	if e.told {
		return dst
	}
	if e.least < e.table.max {
		e.table.evict(0)
		dst = append(dst, sizeUpdate)
	}
	dst = appendInt(dst, sizeUpdate, 5, e.table.max)
	e.least, e.told = e.table.max, true
	return dst
}

// AppendStatus appends the field :status for a code from 100 to 999.
func (e *Encoder) AppendStatus(dst []byte, code int) []byte {
	switch code {
	case 200:
		return append(dst, indexedField|status200)
	case 204:
		return append(dst, indexedField|9)
	case 206:
		return append(dst, indexedField|10)
	case 304:
		return append(dst, indexedField|11)
	case 400:
		return append(dst, indexedField|12)
	case 404:
		return append(dst, indexedField|13)
	case 500:
		return append(dst, indexedField|14)
	}
	var text [3]byte
	text[0], text[1], text[2] = byte('0'+code/100%10), byte('0'+code/10%10), byte('0'+code%10)
	return e.AppendNamed(dst, Status, view.String(text[:]))
}

// AppendContentLength appends the field content-length for n ≥ 0 bytes. The field never enters the table, because its value
// is nearly always different.
func (e *Encoder) AppendContentLength(dst []byte, n int64) []byte {
	var text [20]byte
	i := len(text)
	for {
		i--
		text[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	dst = append(dst, 0x0f, contentLength-0x0f, byte(len(text)-i))
	return append(dst, text[i:]...)
}

// Append appends a field. The name may have upper-case letters; it is written in lower case.
func (e *Encoder) Append(dst []byte, name, value string) []byte {
	return e.append(dst, NameOf(name), name, value)
}

// AppendNamed appends a field with the given Name, which must not be 0.
func (e *Encoder) AppendNamed(dst []byte, name Name, value string) []byte {
	return e.append(dst, name, staticEntries[name].name, value)
}

// AppendNever appends a field that never enters a table (RFC 7541 §7.1.3), because its value is a secret that an attacker
// could guess.
func (e *Encoder) AppendNever(dst []byte, name, value string) []byte {
	return appendLiteral(dst, literalNever, 4, NameOf(name), name, value)
}

func (e *Encoder) append(dst []byte, known Name, name, value string) []byte {
	if known != 0 && known <= lastStaticValue {
		for i := int(known); i <= lastStaticValue && Name(staticFields[i].index) == known; i++ {
			if staticEntries[i].value == value {
				return append(dst, indexedField|byte(i))
			}
		}
	}
	hash := hashOf(known, name, value)
	for i := range e.table.count {
		if en := e.table.get(i); en.class == Class(hash) && e.is(en, known, name, value) {
			return appendInt(dst, indexedField, 7, i+uint32(lastStatic)+1)
		}
	}
	if len(name)+len(value)+entryOverhead > int(e.table.max)/2 || !e.again(hash) {
		return appendLiteral(dst, literalPlain, 4, known, name, value)
	}
	dst = appendInt(dst, literalIndex, 6, uint32(known))
	lowered := view.Bytes(name)
	if known == 0 {
		dst = appendName(dst, name)
		lowered = dst[len(dst)-len(name):]
	}
	e.table.add(entry{class: Class(hash), index: uint8(known)}, lowered, view.Bytes(value))
	return appendString(dst, value)
}

// again reports whether a field with this hash was sent recently, and stores the hash if not.
func (e *Encoder) again(hash uint16) bool {
	if slices.Contains(e.seen[:], hash) {
		return true
	}
	e.seen[e.oldest] = hash
	e.oldest = (e.oldest + 1) % uint8(len(e.seen))
	return false
}

// is reports whether en is the entry of the given field.
func (e *Encoder) is(en *entry, known Name, name, value string) bool {
	if en.index != uint8(known) || int(en.value) != len(value) {
		return false
	}
	text := view.String(e.table.textOf(en))
	if known != 0 {
		return text == value
	}
	return int(en.name) == len(name) && text[en.name:] == value && equalFold(text[:en.name], name)
}

// hashOf returns a hash of a field, which is never 0. It ignores the case of the name. It uses only the beginning and the end
// of the value, which nearly always distinguish values.
func hashOf(known Name, name, value string) uint16 {
	h := uint64(known)
	if known == 0 {
		n := len(name)
		if n > 0 {
			h = uint64(n)<<24 | uint64(name[0]|0x20)<<16 | uint64(name[n/2]|0x20)<<8 | uint64(name[n-1]|0x20)
		}
	}
	h ^= uint64(len(value)) << 40
	h *= 0x9E3779B97F4A7C15
	if b := view.Bytes(value); len(b) >= 8 {
		h ^= binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[len(b)-8:])*0xC2B2AE3D27D4EB4F
	} else {
		for _, c := range b {
			h = h*31 + uint64(c)
		}
	}
	h *= 0x9E3779B97F4A7C15
	return uint16(h>>48) | 1
}

// appendLiteral appends a field whose value is a literal.
func appendLiteral(dst []byte, first byte, prefix uint, known Name, name, value string) []byte {
	dst = appendInt(dst, first, prefix, uint32(known))
	if known == 0 {
		dst = appendName(dst, name)
	}
	return appendString(dst, value)
}

// appendName appends a name as a string literal in lower case.
func appendName(dst []byte, name string) []byte {
	dst = appendInt(dst, 0, 7, uint32(len(name)))
	return appendLower(dst, name)
}

func appendLower(dst []byte, name string) []byte {
	at := len(dst)
	dst = append(dst, name...)
	for i := at; i < len(dst); i++ {
		dst[i] = lower[dst[i]]
	}
	return dst
}

// appendString appends a string literal in Huffman code, if that is shorter, or else as it is.
func appendString(dst []byte, s string) []byte {
	if n := codedLen(s); n < len(s) {
		dst = appendInt(dst, huffmanString, 7, uint32(n))
		return appendCoded(dst, s)
	}
	dst = appendInt(dst, 0, 7, uint32(len(s)))
	return append(dst, s...)
}
