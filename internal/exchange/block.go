package exchange

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// A Block is an immutable set of header fields, rendered once: as wire bytes and as
// value slices for the map of net/http. Any number of goroutines may share one.
type Block struct {
	// What an answer that stands on the block is known by, and sent from, lies together: on 64 bits in two lines of a cache.
	anchor // the block is its own

	names  nameMask // the names in Fields
	number uint32   // of the block among all, for places in tables
	Typed  bool     // Content-Type is one of them
	dated  bool     // Date is one of them
	above  *Block   // of which it was made by Under, and perhaps Over behind that; nil for others
	below  *Block   // ... with what this one adds

	Wire []byte // "Name: value\r\n" for each field, in order; all of them where IsWhole
	hole int    // where in Wire the digits of the answer's Number are to be; 0: nowhere
	tail []byte // what follows Wire, which is that of another block then

	met    [metKept]atomic.Pointer[Block] // results of Answer.Identify
	Fields []BlockField
	merged pairs // this block put on others
	filled pairs // others with what this block adds

	problem any // see Answer.Problem; blocks made from this one have none

	_ [32]byte // on 64 bits to 256 bytes, which the allocator aligns
}

// Over returns the headers of below, except those that b has as well, and those
// of b. A program puts few blocks on few others, so pairs are rendered once and kept with b;
// where there are too many, each time.
func (b *Block) Over(below *Block) *Block {
	if below == nil || b.Typed && below.isMediaType() {
		return b
	}
	if known := b.merged.find(below); known != nil {
		return known
	}
	result := new(Block)
	result.Init()
	result.above, result.below = below.above, below.below
	if len(below.Wire) >= sharedWire && b.names&below.names == 0 && !b.HasNumber() {
		result.follow(below, b)
		b.merged.keep(below, result)
		return result
	}
	for i := range below.Fields {
		if f := &below.Fields[i]; !b.Has(f.Name) {
			result.addAll(f)
		}
	}
	for i := range b.Fields {
		result.addAll(&b.Fields[i])
	}
	b.merged.keep(below, result)
	return result
}

// sharedWire is the length, in bytes, from which the lines of a block are not copied for what is put on it: many blocks
// that say little may be put on one that says much.
const sharedWire = 256

// follow makes the block, which is empty, that of first and then, which have no name in common.
func (b *Block) follow(first, then *Block) {
	b.Fields = slices.Concat(first.Fields, then.Fields)
	b.Wire, b.hole, b.tail = first.Wire, first.hole, slices.Concat(first.tail, then.Wire, then.tail)
	b.names, b.Typed, b.dated = first.names|then.names, first.Typed || then.Typed, first.dated || then.dated
}

// Under returns the headers of above, and those of b that above does not have. Pairs are kept
// with b as Over does it; it is nil where there is no room for another.
func (b *Block) Under(above *Block) *Block {
	if above == nil {
		return b
	}
	if known := b.filled.find(above); known != nil {
		return known
	}
	if !b.filled.hasRoom(above) || b.HasNumber() && above.HasNumber() {
		return nil
	}
	result := new(Block)
	result.Init()
	result.above, result.below = above, b
	for i := range above.Fields {
		result.addAll(&above.Fields[i])
	}
	for i := range b.Fields {
		if f := &b.Fields[i]; !above.Has(f.Name) {
			result.addAll(f)
		}
	}
	b.filled.keep(above, result)
	return result
}

func (b *Block) addAll(f *BlockField) {
	if f.isID {
		b.addID(f.Name)
	}
	for _, v := range f.Values {
		b.Add(f.Name, v)
	}
}

// A BlockField is one name with all its values, in the form net/http's map wants.
type BlockField struct {
	Name   string   // canonical
	Values []string // cap == len, so that an append by a handler copies it
	isID   bool     // its value is the answer's identifier, and there are no Values
}

// Init makes an empty block ready to be filled, before it is shared.
func (b *Block) Init() {
	b.block.Store(b)
	b.number = blocks.Add(1)
}

var blocks atomic.Uint32

// Add adds a field with a canonical name. It is for whoever builds the block.
func (b *Block) Add(name, value string) {
	b.Wire = append(b.Wire, name+": "+value+"\r\n"...)
	b.names |= maskOf(name)
	b.Typed, b.dated = b.Typed || name == "Content-Type", b.dated || name == "Date"
	for i := range b.Fields {
		if f := &b.Fields[i]; f.Name == name {
			f.Values = append(f.Values[:len(f.Values):len(f.Values)], value)
			f.Values = f.Values[:len(f.Values):len(f.Values)]
			return
		}
	}
	b.Fields = append(b.Fields, BlockField{Name: name, Values: []string{value}})
}

// addID adds a field for the digits of the answer's Number. A block has one at most.
func (b *Block) addID(name string) {
	b.hole = len(b.Wire) + len(name) + len(": ")
	b.Wire = append(b.Wire, name+": "+Number(0).String()+"\r\n"...)
	b.names |= maskOf(name)
	b.dated = b.dated || name == "Date"
	b.Fields = append(b.Fields, BlockField{Name: name, isID: true})
}

// IsWhole reports whether Wire is all of the block.
func (b *Block) IsWhole() bool { return b.hole == 0 && b.tail == nil }

// HasNumber reports whether the block has a place for the answer's Number, or a text instead.
func (b *Block) HasNumber() bool { return b.hole != 0 }

// append appends the block as it goes over the wire, with the identifier where it belongs.
func (b *Block) append(out []byte, id Identity) []byte {
	switch {
	case !b.HasNumber():
		out = append(out, b.Wire...)
	case id.text != "":
		out = append(append(out, b.Wire[:b.hole]...), id.text...)
		out = append(out, b.Wire[b.hole+idLength:]...)
	default:
		out = append(out, b.Wire...)
		id.number.put(out[len(out)-len(b.Wire)+b.hole:])
	}
	return append(out, b.tail...)
}

// Has reports whether the block has the named header, be it empty.
func (b *Block) Has(name string) bool { return b.Find(name) != nil }

// Find returns the named field, nil when the block has none. Names compare without
// regard to case.
func (b *Block) Find(name string) *BlockField {
	if b == nil || b.names&maskOf(name) == 0 {
		return nil
	}
	for i := range b.Fields {
		if strings.EqualFold(b.Fields[i].Name, name) {
			return &b.Fields[i]
		}
	}
	return nil
}

// isMediaType reports whether the block says nothing but a Content-Type, as
// those of the constructors do.
func (b *Block) isMediaType() bool {
	return b.Typed && len(b.Fields) == 1
}

// SetIn sets the fields in a header map of net/http, sharing the value slices.
func (b *Block) SetIn(h http.Header) { b.setIn(h, Identity{}) }

func (b *Block) setIn(h http.Header, id Identity) {
	if b == nil {
		return
	}
	for i := range b.Fields {
		if f := &b.Fields[i]; f.isID {
			h[f.Name] = []string{id.String()}
		} else {
			h[f.Name] = f.Values
		}
	}
}
