package dunlin

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A HeaderBlock is an immutable set of response headers, rendered once: as
// wire bytes for the loop engine and as shared value slices for the map of
// net/http. It costs one copy a response and is safe for any number of
// goroutines. Build blocks at start-up and share them:
//
//	var static = dunlin.NewHeaderBlock("Cache-Control", "public,max-age=30", "Vary", "Accept")
type HeaderBlock struct {
	anchor // the block is its own
	fields []blockField
	wire   []byte   // "Name: value\r\n" for each field, in order
	names  nameMask // the names in fields
	typed  bool     // Content-Type is one of them

	merged atomic.Pointer[mergedBlock] // this block put on others, newest first
}

// A mergedBlock is what a block and the one it was put on come to. A program
// puts few blocks on few others, so each pair is rendered once and kept with
// the upper one.
type mergedBlock struct {
	below, result *HeaderBlock
	next          *mergedBlock
}

// maxMerged bounds the pairs kept with one block: beyond it, for blocks that are
// made at run time, a pair is rendered each time.
const maxMerged = 16

// over returns the headers of below, except those that b has as well, and those
// of b.
func (b *HeaderBlock) over(below *HeaderBlock) *HeaderBlock {
	if below == nil || b.typed && below.isMediaType() {
		return b
	}
	kept := 0
	for m := b.merged.Load(); m != nil; m = m.next {
		if m.below == below {
			return m.result
		}
		kept++
	}
	m := &mergedBlock{below: below, result: emptyBlock()}
	for i := range below.fields {
		if f := &below.fields[i]; !b.has(f.name) {
			m.result.addAll(f)
		}
	}
	for i := range b.fields {
		m.result.addAll(&b.fields[i])
	}
	if kept < maxMerged {
		// One that another goroutine keeps at this moment is rendered again.
		m.next = b.merged.Load()
		b.merged.CompareAndSwap(m.next, m)
	}
	return m.result
}

func (b *HeaderBlock) addAll(f *blockField) {
	for _, v := range f.values {
		b.add(f.name, v)
	}
}

// blockField is one name with all its values, in the form net/http's map wants.
type blockField struct {
	name   string   // canonical
	values []string // cap == len, so that an append by a handler copies it
}

// NewHeaderBlock builds a block from alternating names and values. A name may
// come more than once: it is then sent more than once. It panics when a name
// or a value may not stand in a response, since a block is a constant of the
// program.
func NewHeaderBlock(pairs ...string) *HeaderBlock {
	if len(pairs)%2 != 0 {
		panic(fmt.Sprintf("dunlin: NewHeaderBlock: %d strings are not pairs: the last name, %q, has no value", len(pairs), pairs[len(pairs)-1]))
	}
	b := emptyBlock()
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], pairs[i+1]
		if err := checkField(name, value); err != nil {
			panic("dunlin: NewHeaderBlock: " + err.Error())
		}
		b.add(textproto.CanonicalMIMEHeaderKey(name), trimBlanks(value))
	}
	return b
}

func emptyBlock() *HeaderBlock {
	b := new(HeaderBlock)
	b.block.Store(b)
	return b
}

func (b *HeaderBlock) add(name, value string) {
	b.wire = append(b.wire, name+": "+value+"\r\n"...)
	b.names |= maskOf(name)
	b.typed = b.typed || name == "Content-Type"
	for i := range b.fields {
		if f := &b.fields[i]; f.name == name {
			f.values = append(f.values[:len(f.values):len(f.values)], value)
			f.values = f.values[:len(f.values):len(f.values)]
			return
		}
	}
	b.fields = append(b.fields, blockField{name: name, values: []string{value}})
}

// Get returns the first value of the named header, "" when the block has none.
// Names compare without regard to case.
func (b *HeaderBlock) Get(name string) string {
	if f := b.find(name); f != nil {
		return f.values[0]
	}
	return ""
}

// SetIn sets the block's headers in a header map of net/http, sharing its value
// slices: for standard handlers, at the cost of the map alone. The slices must
// not be written to; appending to one copies it.
func (b *HeaderBlock) SetIn(h http.Header) {
	if b == nil {
		return
	}
	for i := range b.fields {
		h[b.fields[i].name] = b.fields[i].values
	}
}

// has reports whether the block has the named header, be it empty.
func (b *HeaderBlock) has(name string) bool { return b.find(name) != nil }

func (b *HeaderBlock) find(name string) *blockField {
	if b == nil || b.names&maskOf(name) == 0 {
		return nil
	}
	for i := range b.fields {
		if strings.EqualFold(b.fields[i].name, name) {
			return &b.fields[i]
		}
	}
	return nil
}

// isMediaType reports whether the block says nothing but a Content-Type, as
// those of the constructors do.
func (b *HeaderBlock) isMediaType() bool {
	return b.typed && len(b.fields) == 1
}

// String returns the block as it goes over the wire.
func (b *HeaderBlock) String() string {
	if b == nil {
		return ""
	}
	return string(b.wire)
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

// ownHeader says why the named header is Dunlin's alone to write, "" when it is
// not: a second hand on these could break the framing of the connection.
func ownHeader(name string) string {
	is := func(own string) bool { return strings.EqualFold(name, own) }
	switch len(name) {
	case len("Date"):
		if is("Date") {
			return "is set when the response is sent"
		}
	case len("Trailer"):
		if is("Trailer") {
			return "follows from how the body is sent"
		}
		if is("Upgrade") {
			return "belongs to the connection, not to the response"
		}
	case len("Connection"):
		if is("Connection") || is("Keep-Alive") {
			return "belongs to the connection, not to the response"
		}
	case len("Content-Length"):
		if is("Content-Length") {
			return "is counted from the body"
		}
	case len("Transfer-Encoding"):
		if is("Transfer-Encoding") {
			return "follows from how the body is sent"
		}
	}
	return ""
}

// checkField reports why name and value may not stand in a response: a name
// that is no token, a value with a control byte (RFC 9110 section 5.5), or a
// header that is Dunlin's own to write.
func checkField(name, value string) error {
	if err := http1.CheckField(name, value); err != nil {
		return fmt.Errorf("response header %q: %w", name, err)
	}
	if why := ownHeader(name); why != "" {
		return fmt.Errorf("response header %q: %s", name, why)
	}
	return nil
}

// plainField reports whether name and value may stand in a response as they
// are: the quick form of checkField for the spelling that nearly every caller
// uses. False means nothing but to look closer.
func plainField(name, value string) bool {
	if name == "" || ownHeader(name) != "" {
		return false
	}
	wrong := uint8(lowerLetter) // at the start of a word
	for i := 0; i < len(name); i++ {
		class := nameClass[name[i]]
		if class&wrong != 0 || class == 0 {
			return false
		}
		wrong = upperLetter
		if name[i] == '-' {
			wrong = lowerLetter
		}
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c < ' ' || c == 0x7f {
			return false
		}
	}
	return value == "" || value[0] != ' ' && value[len(value)-1] != ' '
}

// The classes of bytes in a header name; 0 is for those that are no token (RFC 9110
// section 5.6.2).
const (
	lowerLetter = 1 << iota
	upperLetter
	otherInName
)

var nameClass = func() (class [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		class[c], class[c-'a'+'A'] = lowerLetter, upperLetter
	}
	for _, c := range "0123456789!#$%&'*+-.^_`|~" {
		class[c] = otherInName
	}
	return class
}()

// trimBlanks removes the white space around a value, which is no part of it
// (RFC 9110 section 5.5).
func trimBlanks(value string) string {
	if n := len(value); n > 0 && (value[0] <= ' ' || value[n-1] <= ' ') {
		return strings.Trim(value, " \t")
	}
	return value
}
