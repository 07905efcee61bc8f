package jsonwire

// A map or slice that grows step by step is copied at each step, and the smaller copies become garbage. Therefore, when a []any, a
// map[string]any or a map[string]string has countedFrom elements, the decoder counts the remaining elements in the text and makes
// room for all of them at once.

// countedFrom is the number of elements after which the remaining elements of an object or array are counted.
const countedFrom = 8

// maxReadAhead limits the number of bytes that are read ahead while one text is decoded. It is a multiple of the length of the
// text. Without the limit, deeply nested objects would cost quadratic time.
const maxReadAhead = 2

// ahead returns the number of elements that follow the current element in its object or array. Position i is in the current element
// or directly after it. The argument each is the minimum number of bytes of an element and its comma. The result is a lower bound
// if the limit maxReadAhead was reached, and a guess if the text is not valid JSON. The result does not exceed the number of
// elements that the limits allow.
func (d *decoder) ahead(i, each int) int {
	start, end := i, min(len(d.data), i+maxReadAhead*len(d.data)-d.readAhead)
	n, depth := 0, 0
	for ; i < end; i++ {
		switch d.data[i] {
		case '"':
			next, _, ok := scanString(d.data[:end], i+1)
			if !ok {
				next = end
			}
			i = next - 1
		case ',':
			if depth == 0 {
				n++
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth < 0 {
				end = i
			}
		}
	}
	d.readAhead += i - start
	return min(n, (i-start)/each, max(d.elements, 0))
}

// boxes allocates the numbers and short strings that are stored in interfaces, in blocks of several values. An interface that is
// retained keeps its whole block alive, and the memory of all strings in the block.
//
// Invariant: the values that were taken from a block belong to interfaces and are never written again. The fields numbers and texts
// are the unused rests of the current blocks.
type boxes struct {
	numbers []float64
	texts   []string
	size    int // number of values of the block that was allocated last
}

const (
	maxBoxes    = 16  // maximum number of values in a block
	maxBoxedLen = 256 // maximum length of a string that shares a block, in bytes
)

// nextSize returns the size of the next block, in values. The sizes increase up to maxBoxes, so that a short document does not
// allocate a full block.
func (b *boxes) nextSize() int {
	b.size = min(2*b.size+1, maxBoxes)
	return b.size
}

// number returns v as an interface.
func (b *boxes) number(v float64) any {
	if len(b.numbers) == 0 {
		b.numbers = make([]float64, b.nextSize())
	}
	box := &b.numbers[0]
	*box, b.numbers = v, b.numbers[1:]
	return boxed(boxedNumber, box)
}

// text returns s as an interface. Empty and long strings do not share a block.
func (b *boxes) text(s string) any {
	if uint(len(s)-1) >= maxBoxedLen {
		return s
	}
	if len(b.texts) == 0 {
		b.texts = make([]string, b.nextSize())
	}
	box := &b.texts[0]
	*box, b.texts = s, b.texts[1:]
	return boxed(boxedText, box)
}

var boxedNumber, boxedText = typeOf(float64(0)), typeOf("")
