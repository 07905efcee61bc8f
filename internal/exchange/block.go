package exchange

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// A Block is an immutable set of header fields, rendered once: as wire bytes and as
// value slices for the map of net/http. Any number of goroutines may share one.
type Block struct {
	anchor // the block is its own

	Fields []BlockField
	Wire   []byte   // "Name: value\r\n" for each field, in order
	Typed  bool     // Content-Type is one of them
	names  nameMask // the names in Fields

	merged atomic.Pointer[mergedBlock] // this block put on others, newest first
	filled atomic.Pointer[mergedBlock] // others with what this block adds, newest first
}

// A mergedBlock is what a block and the one it was put on come to. A program
// puts few blocks on few others, so each pair is rendered once and kept with
// the upper one.
type mergedBlock struct {
	below, result *Block
	next          *mergedBlock
}

// find returns the block made with another, nil if it is not kept, and how many are.
func (m *mergedBlock) find(other *Block) (result *Block, kept int) {
	for ; m != nil; m = m.next {
		if m.below == other {
			return m.result, kept
		}
		kept++
	}
	return nil, kept
}

// maxMerged bounds the pairs kept with one block: beyond it, for blocks that are
// made at run time, a pair is rendered each time.
const maxMerged = 16

// Over returns the headers of below, except those that b has as well, and those
// of b.
func (b *Block) Over(below *Block) *Block {
	if below == nil || b.Typed && below.isMediaType() {
		return b
	}
	known, kept := b.merged.Load().find(below)
	if known != nil {
		return known
	}
	m := &mergedBlock{below: below, result: new(Block)}
	m.result.Init()
	for i := range below.Fields {
		if f := &below.Fields[i]; !b.Has(f.Name) {
			m.result.addAll(f)
		}
	}
	for i := range b.Fields {
		m.result.addAll(&b.Fields[i])
	}
	if kept < maxMerged {
		// One that another goroutine keeps at this moment is rendered again.
		m.next = b.merged.Load()
		b.merged.CompareAndSwap(m.next, m)
	}
	return m.result
}

// Under returns the headers of above, and those of b that above does not have. Pairs are kept
// with b, as Over does it.
func (b *Block) Under(above *Block) *Block {
	if above == nil {
		return b
	}
	known, kept := b.filled.Load().find(above)
	if known != nil {
		return known
	}
	m := &mergedBlock{below: above, result: new(Block)}
	m.result.Init()
	for i := range above.Fields {
		m.result.addAll(&above.Fields[i])
	}
	for i := range b.Fields {
		if f := &b.Fields[i]; !above.Has(f.Name) {
			m.result.addAll(f)
		}
	}
	if kept < maxMerged {
		m.next = b.filled.Load()
		b.filled.CompareAndSwap(m.next, m)
	}
	return m.result
}

func (b *Block) addAll(f *BlockField) {
	for _, v := range f.Values {
		b.Add(f.Name, v)
	}
}

// A BlockField is one name with all its values, in the form net/http's map wants.
type BlockField struct {
	Name   string   // canonical
	Values []string // cap == len, so that an append by a handler copies it
}

// Init makes an empty block ready to be filled, before it is shared.
func (b *Block) Init() { b.block.Store(b) }

// Add adds a field with a canonical name. It is for whoever builds the block.
func (b *Block) Add(name, value string) {
	b.Wire = append(b.Wire, name+": "+value+"\r\n"...)
	b.names |= maskOf(name)
	b.Typed = b.Typed || name == "Content-Type"
	for i := range b.Fields {
		if f := &b.Fields[i]; f.Name == name {
			f.Values = append(f.Values[:len(f.Values):len(f.Values)], value)
			f.Values = f.Values[:len(f.Values):len(f.Values)]
			return
		}
	}
	b.Fields = append(b.Fields, BlockField{Name: name, Values: []string{value}})
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

// nameMask is a set of header names with one bit a name: two masks that do not
// meet have no name in common, which spares the comparison of names in the
// ordinary response.
type nameMask uint64

// maskOf returns the mask of one name, the same for every casing of it.
func maskOf(name string) nameMask {
	if name == "" {
		return 0
	}
	h := uint(len(name))*31 + uint(name[0]|0x20) + 7*uint(name[len(name)-1]|0x20)
	return 1 << (h % 64)
}

// SetIn sets the fields in a header map of net/http, sharing the value slices.
func (b *Block) SetIn(h http.Header) {
	if b == nil {
		return
	}
	for i := range b.Fields {
		h[b.Fields[i].Name] = b.Fields[i].Values
	}
}
