package exchange

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
)

// A Block is an immutable set of header fields, rendered once: as wire bytes, and as value slices for the header map of
// net/http. Goroutines may share a Block.
type Block struct {
	// To identify and send an answer based on the block, only the fields up to tail are read. On 64-bit systems they are in two
	// cache lines.
	anchor // anchor.block is this block

	names  nameMask // mask of the names in Fields
	number uint32   // serial number of the block, for slots in tables
	Typed  bool     // Fields has Content-Type
	dated  bool     // Fields has Date
	above  *Block   // for a result of Under, the upper block; kept by Over; otherwise nil
	below  *Block   // for a result of Under, the lower block; kept by Over; otherwise nil

	Wire []byte // "Name: value\r\n" for each field, in order; complete if IsWhole
	hole int    // offset in Wire for the digits of the answer's Number; 0: none
	tail []byte // continues Wire, which is then shared with another block

	met    [metKept]atomic.Pointer[Block] // results of Answer.Identify
	Fields []BlockField
	merged pairs // results of Over, by the lower block
	filled pairs // results of Under, by the upper block

	problem error // see Answer.Problem; not inherited by blocks derived from this one

	_ [32]byte // fills the struct to 256 bytes on 64-bit systems, because the allocator aligns that size
}

// Over returns a block with the fields of below, except those that b also has, followed by the fields of b. Results are cached in
// b. If the cache is full, each call renders a new block.
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

// sharedWire is the minimum length, in bytes, of the lines of a block that are shared with blocks built on it instead of
// copied: many small blocks may be put on one large block.
const sharedWire = 256

// follow sets the empty block to first followed by then, which have no name in common.
func (b *Block) follow(first, then *Block) {
	b.Fields = slices.Concat(first.Fields, then.Fields)
	b.Wire, b.hole, b.tail = first.Wire, first.hole, slices.Concat(first.tail, then.Wire, then.tail)
	b.names, b.Typed, b.dated = first.names|then.names, first.Typed || then.Typed, first.dated || then.dated
}

// Under returns a block with the fields of above, followed by the fields of b that above does not have. Results are cached in b.
// If the cache is full, Under returns nil.
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

// A BlockField is a name with all its values, in the form for net/http's header map.
type BlockField struct {
	Name   string   // canonical
	Values []string // cap == len, so that an append by a handler copies them
	isID   bool     // the value is the identifier of the request; Values is empty
}

// Init initialises an empty block before it is shared.
func (b *Block) Init() {
	b.block.Store(b)
	b.number = blocks.Add(1)
}

var blocks atomic.Uint32

// AddPairs adds fields given by alternating names and values. It returns an error if a field is invalid in a response.
func (b *Block) AddPairs(pairs []string) error {
	if len(pairs)%2 != 0 {
		return fmt.Errorf("%d strings are not pairs: the last name, %q, has no value", len(pairs), pairs[len(pairs)-1])
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := CheckField(pairs[i], pairs[i+1]); err != nil {
			return err
		}
		b.Add(textproto.CanonicalMIMEHeaderKey(pairs[i]), TrimBlanks(pairs[i+1]))
	}
	return nil
}

// Add adds a field with a canonical name. Only the code that builds the block may call it.
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

// addID adds a field for the digits of the answer's Number. A block has at most one such field.
func (b *Block) addID(name string) {
	b.hole = len(b.Wire) + len(name) + len(": ")
	b.Wire = append(b.Wire, name+": "+Number(0).String()+"\r\n"...)
	b.names |= maskOf(name)
	b.dated = b.dated || name == "Date"
	b.Fields = append(b.Fields, BlockField{Name: name, isID: true})
}

// IsWhole reports whether Wire contains the complete block.
func (b *Block) IsWhole() bool { return b.hole == 0 && b.tail == nil }

// HasNumber reports whether the block has a place for the answer's Number or its text.
func (b *Block) HasNumber() bool { return b.hole != 0 }

// append appends the block's lines to out, with the identifier in its place.
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

// Has reports whether the block has the named field, also with an empty value.
func (b *Block) Has(name string) bool { return b.Find(name) != nil }

// Find returns the named field, or nil. Names are compared without regard to case.
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

// isMediaType reports whether Content-Type is the only field of the block, as in the blocks of constructors.
func (b *Block) isMediaType() bool {
	return b.Typed && len(b.Fields) == 1
}

// SetIn sets the fields in a header map of net/http and shares the value slices.
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
