package hpack

import "fmt"

// Error is the reason why a block was refused. It is a small comparable value. After an Error the dynamic tables of
// the two sides may differ, so the connection must be closed with COMPRESSION_ERROR (RFC 9113 §4.3).
type Error struct {
	problem problem
	offset  int
}

// Offset returns the position of the problem in the block, in bytes.
func (e Error) Offset() int { return e.offset }

// Bomb reports whether the block was refused because of its decoded size.
func (e Error) Bomb() bool { return e.problem == bomb }

// Error describes the problem and its position, and names the section of RFC 7541. The text does not quote the
// input.
func (e Error) Error() string {
	p := &problems[e.problem]
	return fmt.Sprintf("%s at byte %d of the field block (RFC 7541 section %s)", p.text, e.offset, p.section)
}

// A problem is a reason to refuse a block. 0 means no problem.
type problem uint8

const (
	noProblem problem = iota
	truncated
	integerTooLarge
	indexZero
	indexTooLarge
	paddingTooLong
	paddingNotOnes
	endOfString
	updateLate
	updateTooLarge
	updateMissing
	tooManyUpdates
	bomb
)

var problems = [...]struct{ section, text string }{
	truncated:       {"6", "field cut off by the end of the block"},
	integerTooLarge: {"5.1", "integer too large"},
	indexZero:       {"6.1", "index 0"},
	indexTooLarge:   {"2.3.3", "index beyond the end of the dynamic table"},
	paddingTooLong:  {"5.2", "Huffman-coded string with more than 7 bits of padding"},
	paddingNotOnes:  {"5.2", "Huffman-coded string with invalid padding"},
	endOfString:     {"5.2", "Huffman-coded string with the symbol for its end"},
	updateLate:      {"4.2", "size update after the first field"},
	updateTooLarge:  {"6.3", "size update beyond the announced size"},
	updateMissing:   {"4.2", "no size update, though the announced size was reduced"},
	tooManyUpdates:  {"4.2", "more than two size updates"},
	bomb:            {"7.3", "block that expands to many times the size allowed"},
}
