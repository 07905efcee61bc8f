package schema

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// A sum stands for a value of JSON Schema's data model: equal values have equal sums, and
// others do not, but for a chance of about 2^-128. The seeds are secret, so clients cannot look
// for collisions.
type sum [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func sumOf(b []byte) sum { return sum{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// and returns the sum of a sequence that has another value behind it.
func (s sum) and(next sum) sum {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], s[0])
	binary.LittleEndian.PutUint64(b[8:], s[1])
	binary.LittleEndian.PutUint64(b[16:], next[0])
	binary.LittleEndian.PutUint64(b[24:], next[1])
	return sumOf(b[:])
}

// The sums that sequences begin with. Their bytes begin no other sum: see hasher.
var arraySum, objectSum = sumOf([]byte("[")), sumOf([]byte("{"))

// A hasher makes the sums of values in a well-formed text, each in one pass over its bytes.
// It remembers the sums of arrays in which it has looked for repeated elements, so that arrays
// within each other are read once.
type hasher struct {
	body    []byte
	scratch []byte
	members []memberSum // of the objects that are being read
	known   map[int]knownSum
}

// A memberSum is a member of an object.
type memberSum struct{ name, value sum }

// A knownSum is the sum of the value that begins at some offset, and the offset behind it.
type knownSum struct {
	sum sum
	end int
}

// value returns the sum of the value at offset i, and the offset behind it. The bytes that are
// summed begin with a quotation mark for strings, and are a number or a word as such.
func (h *hasher) value(i int) (sum, int) {
	b := h.body
	i = skipSpace(b, i)
	switch c := b[i]; {
	case c == '"':
		return h.text(i)
	case c == '-' || isDigit(c):
		end, _ := scanNumber(b, i)
		d := parseDecimal(b[i:end])
		h.scratch = d.appendCanonical(h.scratch[:0])
		return sumOf(h.scratch), end
	case c == '[':
		if k, ok := h.known[i]; ok {
			return k.sum, k.end
		}
		return h.array(i, nil)
	case c == '{':
		return h.object(i)
	}
	end := i
	for end < len(b) && 'a' <= b[end] && b[end] <= 'z' {
		end++
	}
	return sumOf(b[i:end]), end
}

// text returns the sum of the string at offset i.
func (h *hasher) text(i int) (sum, int) {
	end, flags, _ := scanString(h.body, i)
	if flags&escaped == 0 {
		return sumOf(h.body[i : end-1]), end
	}
	h.scratch = appendUnescaped(append(h.scratch[:0], '"'), h.body[i+1:end-1])
	return sumOf(h.scratch), end
}

// array returns the sum of the array at offset i. It calls each, if there is one, with the
// sums of the elements.
func (h *hasher) array(i int, each func(sum)) (sum, int) {
	b, all := h.body, arraySum
	for i = skipSpace(b, i+1); b[i] != ']'; {
		var element sum
		element, i = h.value(i)
		if all = all.and(element); each != nil {
			each(element)
		}
		if i = skipSpace(b, i); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return all, i + 1
}

// object returns the sum of the object at offset i, whatever the order of its members. Of two
// members by one name the last counts.
func (h *hasher) object(i int) (sum, int) {
	b, all, start := h.body, objectSum, len(h.members)
	for i = skipSpace(b, i+1); b[i] != '}'; {
		var m memberSum
		m.name, i = h.text(i)
		m.value, i = h.value(skipSpace(b, i) + 1)
		h.members = append(h.members, m)
		if i = skipSpace(b, i); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	own := h.members[start:]
	slices.SortStableFunc(own, func(x, y memberSum) int {
		return cmp.Or(cmp.Compare(x.name[0], y.name[0]), cmp.Compare(x.name[1], y.name[1]))
	})
	for n, m := range own {
		if n+1 < len(own) && own[n+1].name == m.name {
			continue
		}
		all = all.and(m.name).and(m.value)
	}
	h.members = h.members[:start]
	return all, i + 1
}

// firstRepeated returns the index of the first element of the array at offset i that equals
// an earlier one.
func (h *hasher) firstRepeated(i int) (index int, found bool) {
	seen := map[sum]struct{}{}
	n := 0
	all, end := h.array(i, func(element sum) {
		if _, twice := seen[element]; twice && !found {
			index, found = n, true
		}
		seen[element] = struct{}{}
		n++
	})
	h.remember(i, all, end)
	return index, found
}

// remember keeps the sum of the value at offset i.
func (h *hasher) remember(i int, all sum, end int) {
	if h.known == nil {
		h.known = map[int]knownSum{}
	}
	h.known[i] = knownSum{all, end}
}

// repeats reports whether an element of a well-formed array comes twice.
func repeats(array []byte) bool {
	h := hasher{body: array}
	_, found := h.firstRepeated(0)
	return found
}

// sumOfValue is the sum of a well-formed value.
func sumOfValue(text []byte) sum {
	h := hasher{body: text}
	all, _ := h.value(0)
	return all
}

// nests reports whether values of the node hold others of it, each of which is looked at as a
// whole: then a decoder, which remembers no sums, would read the innermost again and again.
func (n *Node) nests() bool {
	whole := n.Rules.UniqueItems && !n.Elem.isScalar() || n.Rules.enum != nil
	return whole && (n.Kind == Array || n.Kind == Map) && n.Elem.leadsTo(n, map[*Struct]bool{})
}

func (n *Node) isScalar() bool {
	switch n.Kind {
	case Any, Array, Map, Object, Custom:
		return false
	}
	return true
}

func (n *Node) leadsTo(other *Node, seen map[*Struct]bool) bool {
	switch {
	case n == nil:
		return false
	case n == other:
		return true
	case n.Struct == nil:
		return n.Elem.leadsTo(other, seen)
	case seen[n.Struct]:
		return false
	}
	seen[n.Struct] = true
	for i := range n.Struct.Members {
		if n.Struct.Members[i].Node.leadsTo(other, seen) {
			return true
		}
	}
	return false
}
