package schema

import (
	"bytes"
	"hash/maphash"
	"math"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// A nameSet finds duplicate names among the members of an object. Because an object may have many members, most names are
// stored as offsets in the text. A map of strings would need twice the time and seven times the memory.
type nameSet struct {
	few    [8][]byte           // the first names
	n      int                 // number of names in few
	slots  nameSlots           // further names, whose text in the object has no escapes
	others map[string]struct{} // further names that slots cannot contain
}

// add adds a name and reports whether it is new. name is the name with its escapes decoded, at is the offset of the name
// in the text, and escaped reports whether it has escapes there. The caller must not change name and text while the set
// is in use.
func (s *nameSet) add(name, text []byte, at int, escaped bool) bool {
	for _, other := range s.few[:s.n] {
		if string(other) == string(name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if _, had := s.others[view.String(name)]; had {
		return false
	}
	if !escaped && uint64(at) <= math.MaxUint32 {
		return s.slots.add(name, text, uint32(at))
	}
	if bytes.IndexByte(name, '"') < 0 && s.slots.has(name, text) {
		return false
	}
	if s.others == nil {
		s.others = map[string]struct{}{}
	}
	s.others[view.String(name)] = struct{}{}
	return true
}

// nameSlots is a hash table with linear probing.
//
// Invariant: the length of table is 0 or a power of two, and at most three quarters of it are used.
type nameSlots struct {
	table []nameSlot
	used  int
}

// A nameSlot is a name at an offset in the text. The zero value is a free slot, because no name is at offset 0.
type nameSlot struct{ hash, at uint32 }

func hashOf(name []byte) uint32 { return uint32(maphash.Bytes(seeds[0], name)) }

// add adds the name at the offset at in the text, and reports whether it is new.
func (s *nameSlots) add(name, text []byte, at uint32) bool {
	if 4*(s.used+1) > 3*len(s.table) {
		s.grow()
	}
	hash := hashOf(name)
	slot := s.find(name, text, hash)
	if slot.at != 0 {
		return false
	}
	*slot = nameSlot{hash, at}
	s.used++
	return true
}

// has reports whether the table contains a name. The name must not contain quotation marks.
func (s *nameSlots) has(name, text []byte) bool {
	return s.used > 0 && s.find(name, text, hashOf(name)).at != 0
}

// find returns the slot of a name, or the free slot for the name. In the text, a quotation mark follows each name.
func (s *nameSlots) find(name, text []byte, hash uint32) *nameSlot {
	for i := int(hash); ; i++ {
		slot := &s.table[i&(len(s.table)-1)]
		if slot.at == 0 {
			return slot
		}
		if slot.hash == hash {
			if found := text[slot.at:]; len(found) > len(name) && found[len(name)] == '"' && string(found[:len(name)]) == string(name) {
				return slot
			}
		}
	}
}

// grow doubles the table.
func (s *nameSlots) grow() {
	smaller := s.table
	s.table = make([]nameSlot, max(2*len(smaller), 32))
	for _, slot := range smaller {
		if slot.at == 0 {
			continue
		}
		i := int(slot.hash)
		for s.table[i&(len(s.table)-1)].at != 0 {
			i++
		}
		s.table[i&(len(s.table)-1)] = slot
	}
}
