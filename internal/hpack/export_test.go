package hpack

import "fmt"

func init() { needHuffman.Do(makeHuffman) } // tests use the code without a Decoder

// HuffmanCodes returns the code of each symbol as a string of 0 and 1.
func HuffmanCodes() []string {
	codes := make([]string, len(codeBits))
	for s := range codes {
		codes[s] = fmt.Sprintf("%0*b", codeBits[s], huffman.codes[s])
	}
	return codes
}

// AppendHuffman and DecodeHuffman apply only the Huffman code.
func AppendHuffman(dst []byte, s string) []byte { return appendCoded(dst, s) }

func DecodeHuffman(dst, src []byte) ([]byte, bool) {
	out, p := appendDecoded(dst, src)
	return out, p == noProblem
}

func HuffmanLen(s string) int { return codedLen(s) }

// StaticTable returns the names and values of the static table. Index 0 is unused.
func StaticTable() (entries [][2]string) {
	for _, e := range staticEntries {
		entries = append(entries, [2]string{e.name, e.value})
	}
	return entries
}

// TableSize returns the size of the decoder's dynamic table, as RFC 7541 counts it.
func (d *Decoder) TableSize() int { return int(d.table.size) }

// TableSize returns the size of the encoder's dynamic table.
func (e *Encoder) TableSize() int { return int(e.table.size) }

// AppendPlain and AppendIndexed append a field as a literal without Huffman code.
func AppendPlain(dst []byte, name, value string) []byte {
	return appendRaw(append(dst, literalPlain), name, value)
}

func AppendIndexed(dst []byte, name, value string) []byte {
	return appendRaw(append(dst, literalIndex), name, value)
}

func appendRaw(dst []byte, name, value string) []byte {
	dst = append(appendInt(dst, 0, 7, uint32(len(name))), name...)
	return append(appendInt(dst, 0, 7, uint32(len(value))), value...)
}
