package schema

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// A sum identifies a value in JSON Schema's data model: equal values have equal sums. Different
// values have different sums, except with a probability of about 2^-128. The seeds are secret, so
// that clients cannot search for collisions.
type sum [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func sumOf(b []byte) sum { return sum{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// The method and adds a value to a sequence: s is the sum of the sequence, next is the sum of the
// value, and the result is the sum of the longer sequence.
func (s sum) and(next sum) sum {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], s[0])
	binary.LittleEndian.PutUint64(b[8:], s[1])
	binary.LittleEndian.PutUint64(b[16:], next[0])
	binary.LittleEndian.PutUint64(b[24:], next[1])
	return sumOf(b[:])
}

// arraySum and objectSum are the sums of the empty array and the empty object, from which the sums
// of other arrays and objects are computed. No scalar is hashed from these bytes, see hasher.value.
var arraySum, objectSum = sumOf([]byte("[")), sumOf([]byte("{"))

// A hasher computes the sums of values in a well-formed text, each in one pass. It stores the sums
// of arrays that were checked for uniqueItems or enum, so that they are not read again when an
// enclosing value is checked.
type hasher struct {
	body    []byte
	scratch []byte
	members []memberSum // members of the objects that are being read
	known   map[int]knownSum
}

// A memberSum has the sums of a member's name and value.
type memberSum struct{ name, value sum }

// A knownSum is the sum of a value and the offset after the value.
type knownSum struct {
	sum sum
	end int
}

// value returns the sum of the value at offset i, and the offset after the value. The sum of a
// string is computed from bytes that begin with a quotation mark. The sum of a number is computed
// from its canonical form, and the sum of a word from its text.
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

// text returns the sum of the string at offset i, and the offset after the string.
func (h *hasher) text(i int) (sum, int) {
	end, flags, _ := scanString(h.body, i)
	if flags&escaped == 0 {
		return sumOf(h.body[i : end-1]), end
	}
	h.scratch = appendUnescaped(append(h.scratch[:0], '"'), h.body[i+1:end-1])
	return sumOf(h.scratch), end
}

// array returns the sum of the array at offset i, and the offset after the array. If the function
// each is not nil, array calls it with the sum of every element.
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

// object returns the sum of the object at offset i, and the offset after the object. The sum does
// not depend on the order of members. If several members have the same name, the last of these
// members counts.
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

// firstRepeated returns the index of the first element that equals an earlier element, in the array
// at offset i.
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

// remember stores the sum of the value at offset i. end is the offset after the value.
func (h *hasher) remember(i int, all sum, end int) {
	if h.known == nil {
		h.known = map[int]knownSum{}
	}
	h.known[i] = knownSum{all, end}
}

// repeats reports whether a well-formed array contains two equal elements.
func repeats(array []byte) bool {
	h := hasher{body: array}
	_, found := h.firstRepeated(0)
	return found
}

// sumOfValue returns the sum of a well-formed value.
func sumOfValue(text []byte) sum {
	h := hasher{body: text}
	all, _ := h.value(0)
	return all
}

// nests reports whether the node is recursive and has a rule for which each value is read as a
// whole. A decoder stores no sums, so it would read the innermost values once for each level.
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
