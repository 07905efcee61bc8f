package exchange

import "github.com/dunlinhttp/dunlin/internal/view"

// Strings copies borrowed bytes into safe strings: strings that stay valid and unchanged. It appends them to a chunk of memory
// that is never reused; the garbage collector frees the chunk when no string in it is used any more. One allocation serves a few
// hundred requests. The zero value is ready for use. A Strings belongs to one goroutine at a time.
//
// Invariant: the bytes of the chunk before rest belong to returned strings and are never written again.
type Strings struct {
	rest    []byte    // the unused part of the current chunk
	values  *values   // allocated on demand
	anchors *[]anchor // the unused part of a chunk, like rest; allocated on demand
	next    Number    // the next unused number for the identifier of a request
}

// values allocates value slices for net/http's header map.
type values struct {
	list []string // the unused part of a chunk, like rest
	// recent caches some slices by the address of their string: a header with a constant value needs only one slice. An entry
	// keeps its string alive, so that its address is not reused.
	recent [recentValues][]string
}

const (
	chunkSize  = 4 << 10       // bytes per chunk
	firstSize  = 256           // bytes of the first chunk; small, because a request that waits may not need more
	maxChunked = chunkSize / 4 // longer strings get an allocation of their own
	listSize   = 64            // strings per chunk of list
	anchored   = 64            // anchors per chunk

	recentValues = 8  // number of cached slices
	maxRecent    = 64 // maximum length of a cached value, in bytes
)

// Copy returns a safe copy of b.
func (c *Strings) Copy(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxChunked {
		return string(b)
	}
	own := c.alloc(len(b))
	copy(own, b)
	return view.String(own)
}

// anchor returns an anchor for an Answer with the headers of b, in which text replaces b's Number.
func (c *Strings) anchor(b *Block, text string) *anchor {
	if c.anchors == nil {
		c.anchors = new([]anchor)
	}
	if len(*c.anchors) == 0 {
		piece := make([]anchor, anchored)
		piece[0].block.Store(b)
		for n := 1; n < len(piece); n *= 2 {
			copy(piece[n:], piece[:n]) // no other goroutine has access to them yet
		}
		*c.anchors = piece
	}
	a := &(*c.anchors)[0]
	*c.anchors = (*c.anchors)[1:]
	if a.block.Load() != b { // avoids a store, which is slow, since most answers have the block of the previous one
		a.block.Store(b)
	}
	a.text = text
	return a
}

// alloc returns n bytes for a new string. n is at most maxChunked.
func (c *Strings) alloc(n int) []byte {
	if n > len(c.rest) {
		c.more(n)
	}
	own := c.rest[:n:n]
	c.rest = c.rest[n:]
	return own
}

// more begins a chunk with room for n bytes.
func (c *Strings) more(n int) {
	size := chunkSize
	if c.rest == nil && n <= firstSize {
		size = firstSize
	}
	c.rest = make([]byte, size)
}

// Values returns a slice for a header map that has only the element s. The element must not be changed; append copies the slice.
func (c *Strings) Values(s string) []string {
	if c.values == nil {
		c.values = new(values)
	}
	if s == "" || len(s) > maxRecent {
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
