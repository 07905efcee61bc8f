package exchange

import (
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// Strings makes borrowed bytes into safe strings: it copies them into a piece
// of memory that is only ever appended to and never used again, so that a
// string stays valid and unchanged for as long as anybody holds it. The
// piece dies with its last string. One allocation serves some hundred of
// requests. The zero value is ready; it belongs to one goroutine at a time.
//
// Invariant: what lies before len(rest) is shared with strings already handed
// out and is never written again.
type Strings struct {
	rest    []byte    // the unused part of the current piece
	values  *values   // made when they are first needed
	anchors *[]anchor // likewise; as rest
	next    Number    // of a request that wants one
}

// values are the value slices that net/http's header map wants.
type values struct {
	list []string // as rest
	// recent holds some slices made before, by the address of their string: a
	// header whose value is a constant of the program needs only one. An entry
	// keeps its string alive, so an address cannot come to mean another.
	recent [recentValues][]string
}

const (
	chunkSize = 4 << 10       // bytes of a piece
	firstSize = 256           // of the first one: what waits may copy no more
	chunkMost = chunkSize / 4 // longer strings get memory of their own
	listSize  = 64            // strings a piece of list
	anchored  = 64            // anchors a piece

	recentValues = 8  // slices remembered
	recentMost   = 64 // bytes of the longest value that is
)

// Copy returns a safe copy of b.
func (c *Strings) Copy(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > chunkMost {
		return string(b)
	}
	own := c.take(len(b))
	copy(own, b)
	return view.String(own)
}

// anchor returns one for answers that stand on a block and say a text in the place it has for a Number.
func (c *Strings) anchor(b *Block, text string) *anchor {
	if c.anchors == nil {
		c.anchors = new([]anchor)
	}
	if len(*c.anchors) == 0 {
		piece := make([]anchor, anchored)
		piece[0].block.Store(b)
		for n := 1; n < len(piece); n *= 2 {
			copy(piece[n:], piece[:n]) // nobody else has seen them
		}
		*c.anchors = piece
	}
	a := &(*c.anchors)[0]
	*c.anchors = (*c.anchors)[1:]
	if a.block.Load() != b { // a store costs a fence, and most answers stand on the block that the one before stood on
		a.block.Store(b)
	}
	a.text = text
	return a
}

// take returns n bytes, chunkMost at most, for a string that is to be made.
func (c *Strings) take(n int) []byte {
	if n > len(c.rest) {
		c.more(n)
	}
	own := c.rest[:n:n]
	c.rest = c.rest[n:]
	return own
}

// more begins a piece that has room for n bytes.
func (c *Strings) more(n int) {
	size := chunkSize
	if c.rest == nil && n <= firstSize {
		size = firstSize
	}
	c.rest = make([]byte, size)
}

// Values returns a slice that holds just s, for a header map, and never anything
// else. Nobody may write to it; appending copies it.
func (c *Strings) Values(s string) []string {
	if c.values == nil {
		c.values = new(values)
	}
	if s == "" || len(s) > recentMost {
		return c.values.slice(s)
	}
	e := &c.values.recent[view.AddressOf(s)/16%recentValues]
	if len(*e) == 0 || len((*e)[0]) != len(s) || view.AddressOf((*e)[0]) != view.AddressOf(s) {
		*e = c.values.slice(s)
	}
	return *e
}

func (c *values) slice(s string) []string {
	if len(c.list) == 0 {
		c.list = make([]string, listSize)
	}
	v := c.list[:1:1]
	v[0] = s
	c.list = c.list[1:]
	return v
}

// AppendCanonical appends the canonical form of a path to dst: percent-decoded, but for %2F
// and %25. It fails for an escape that is malformed.
func AppendCanonical(dst []byte, path string) ([]byte, error) { return router.Canonical(dst, path) }
