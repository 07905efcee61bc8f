package jsonwire

import "math"

// slice reads an array into a slice. Like encoding/json it reuses the existing elements, including the elements between length
// and capacity, and then grows the slice.
func (d *decoder) slice(p *decodePlan, m memory, start int) int {
	if d.depth--; d.depth < 0 {
		return d.refuse(ProblemDepth, start)
	}
	h := m.header()
	i, more := d.open(start, ']')
	n := 0
	for more {
		if n >= h.cap {
			if h.len = n; !d.grow(p, m, n, start, i) {
				return -1
			}
		}
		// The address is computed for each element, because an element may be an interface that contains a pointer to the
		// slice. Decoding such an element changes the slice.
		at, after := h.first().at(uintptr(n)*p.size), 0
		if p.elem.op == opStruct && i < len(d.data) && d.data[i] == '{' { // faster than a call of value
			after = d.object(p.elem, at, i)
		} else {
			after = d.value(p.elem, at, i)
		}
		if after < 0 {
			return -1
		}
		n++
		if i, more = d.next(after, ']'); i < 0 {
			return -1
		}
	}
	if i < 0 {
		return -1
	}
	if h.len = n; n == 0 {
		store(m, []struct{}{})
	}
	d.depth++
	d.count = n
	return i
}

const (
	firstBytes    = 256 // initial capacity of a slice in bytes, for at most firstElements elements
	firstElements = 8
	steadyLength  = 64       // a slice of at least this length grows according to the remaining length of the text
	guessedBytes  = 64 << 10 // size in bytes up to which the capacity of a slice that is the whole text may grow at once
)

// grow makes room for more elements in the slice at m. The slice has n elements, which were read from data[start:i]. grow
// doubles the capacity of a short slice. For a slice of at least steadyLength elements, and for a slice that is the whole text,
// grow estimates the final number of elements: it assumes that the rest of the text consists of elements of the same size.
// Because this is a guess, the new capacity is at most four times n. If the slice is the whole text, the bound is eight times n
// or guessedBytes, whichever is larger. The new capacity is never more than the number of elements that the limits allow. grow
// returns false if d.room has no memory.
func (d *decoder) grow(p *decodePlan, m memory, n, start, i int) bool {
	size := max(int(p.size), 1)
	want := max(2*n, min(firstElements, max(1, firstBytes/size)))
	whole := d.depth == d.limits.MaxDepth-1 && start <= wholeStart
	if n >= steadyLength || n > 0 && whole {
		likely, most := n+n*(len(d.data)-i)/(i-start)+n/8+1, 4*n
		if whole {
			most = max(8*n, guessedBytes/size)
		}
		want = max(n+n/4+1, min(likely, most))
	}
	left := max(d.elements, 0)                                              // number of elements that may follow the current element
	want = min(want, n+(len(d.data)-i)/2+1, n+1+min(left, math.MaxInt-n-1)) // an element and its comma take two bytes
	h := m.header()
	more := want - h.cap
	if !d.chargeMany(more, p.size) {
		return false
	}
	more += h.cap
	growSlice(p.typ, p.elem.op, m, want-n)
	d.free -= (h.cap - more) * int(p.size) // reflect rounds the capacity up
	return true
}

// wholeStart is the maximum offset of an array that counts as the whole text. White space may precede the array.
const wholeStart = 64

// array reads an array into a Go array. Extra elements of the text are dropped, and missing elements become zero.
func (d *decoder) array(p *decodePlan, m memory, start int) int {
	if d.depth--; d.depth < 0 {
		return d.refuse(ProblemDepth, start)
	}
	i, more := d.open(start, ']')
	n := 0
	for more {
		after := 0
		if n < p.length {
			after = d.value(p.elem, m.at(uintptr(n)*p.size), i)
		} else {
			after = d.skip(i)
		}
		if after < 0 {
			return -1
		}
		n++
		if i, more = d.next(after, ']'); i < 0 {
			return -1
		}
	}
	if i < 0 {
		return -1
	}
	for rest := n; rest < p.length; rest++ {
		valueAt(p.elem.typ, m.at(uintptr(rest)*p.size)).SetZero()
	}
	d.depth++
	d.count = n
	return i
}
