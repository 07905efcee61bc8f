package hpack

import "github.com/dunlinhttp/dunlin/internal/view"

// Limits bounds a field block. All fields must be positive. Goroutines may share a Limits, because the package only
// reads it.
type Limits struct {
	// MaxList is the maximum size of the list of fields: the bytes of names and values, and 32 bytes for each field (RFC
	// 9113 §6.5.2).
	MaxList int

	// MaxFields is the maximum number of fields in a list. As in HTTP/1.1, the method, the path and the scheme do not
	// count, and all parts of Cookie count as one field (RFC 9113 §8.2.3). MaxList limits the fields that do not count.
	MaxFields int

	// MaxWork is the decoded size, counted as for MaxList, at which decoding a block ends with an error. A block that
	// exceeds MaxList is decoded to its end, because the dynamic table must stay in sync. Such a block can refer to the
	// same large entry thousands of times.
	MaxWork int
}

// Classes maps fields to classes that the importing package defines.
type Classes struct {
	classify func(name, value []byte) Class
	static   [lastStatic + 1]Class
}

// NewClasses returns Classes that are computed by classify. classify must return the same result for the same arguments,
// and must not keep its arguments.
func NewClasses(classify func(name, value []byte) Class) *Classes {
	c := &Classes{classify: classify}
	for i := 1; i <= lastStatic; i++ {
		c.static[i] = classify([]byte(staticEntries[i].name), []byte(staticEntries[i].value))
	}
	return c
}

// A Decoder reads the blocks of one direction of a connection. Only one goroutine may use it at a time.
type Decoder struct {
	table   table
	classes *Classes
	allowed uint32 // the maximum size of the table that the peer has acknowledged, in bytes
	reduced bool   // allowed is less than the size of the table, so the peer must send a size update
}

// DefaultTableSize is the initial size of both dynamic tables (RFC 9113 §6.5.2).
const DefaultTableSize = 4096

// Init prepares the decoder for a connection. If classes is nil, all fields have the class 0.
func (d *Decoder) Init(classes *Classes) {
	needHuffman.Do(makeHuffman)
	*d = Decoder{classes: classes, allowed: DefaultTableSize}
	d.table.max = DefaultTableSize
}

// SetAllowed records that the peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of at most MaxTableSize.
func (d *Decoder) SetAllowed(size uint32) {
	d.allowed = size
	d.reduced = size < d.table.max
}

// Footprint returns the memory of the dynamic table, in bytes.
func (d *Decoder) Footprint() int { return d.table.footprint() }

// Shrink releases memory that the dynamic table does not need at present.
func (d *Decoder) Shrink() { d.table.shrink() }

// The first bits of the representations of fields (RFC 7541 §6).
const (
	indexedField  = 0x80 // 1.......
	literalIndex  = 0x40 // 01......
	sizeUpdate    = 0x20 // 001.....
	literalNever  = 0x10 // 0001....
	literalPlain  = 0x00 // 0000....
	huffmanString = 0x80
)

// Decode decodes a complete block into l, whose previous content is removed. It does not keep block. The error is an
// Error; after an error the caller must close the connection.
func (d *Decoder) Decode(block []byte, l *List, lim *Limits) error {
	l.Reset()
	i, p := d.updates(block)
	for p == noProblem && i < len(block) {
		b := block[i]
		switch {
		case b&indexedField != 0:
			i, p = d.indexed(block, i, l, lim)
		case b&literalIndex != 0:
			i, p = d.literal(block, i, 6, l, lim)
		case b&sizeUpdate != 0:
			p = updateLate
		default:
			i, p = d.literal(block, i, 4, l, lim)
		}
		if p == noProblem && l.size > lim.MaxWork {
			p = bomb
		}
	}
	if p != noProblem {
		return Error{problem: p, offset: i}
	}
	return nil
}

// updates reads the size updates at the beginning of a block.
func (d *Decoder) updates(block []byte) (i int, p problem) {
	for n := 0; i < len(block) && block[i]&0xe0 == sizeUpdate; n++ {
		if n == 2 {
			return i, tooManyUpdates
		}
		size, end, p := readInt(block, i, 5)
		if p != noProblem {
			return i, p
		}
		if size > d.allowed {
			return i, updateTooLarge
		}
		d.table.setMax(size)
		d.reduced = false
		i = end
	}
	if d.reduced {
		return i, updateMissing
	}
	return i, noProblem
}

// indexed reads a field that is represented by an index (RFC 7541 §6.1).
func (d *Decoder) indexed(block []byte, at int, l *List, lim *Limits) (end int, p problem) {
	index, end := uint32(block[at]&0x7f), at+1
	if index == 0x7f {
		if index, end, p = readLong(block, end, index); p != noProblem {
			return at, p
		}
	}
	if index == 0 {
		return at, indexZero
	}
	if index <= uint32(lastStatic) {
		f := staticFields[index]
		if d.classes != nil {
			f.class = d.classes.static[index]
		}
		l.add(f, len(l.buf), lim)
		return end, noProblem
	}
	e := d.table.get(index - uint32(lastStatic) - 1)
	if e == nil {
		return at, indexTooLarge
	}
	text := len(l.buf)
	l.buf = append(l.buf, d.table.textOf(e)...)
	f := field{class: e.class, index: e.index}
	value := uint32(len(l.buf)) - uint32(e.value)
	f.name, f.value = span{uint32(text), value}, span{value, uint32(len(l.buf))}
	if e.index != 0 {
		f.name = staticFields[e.index].name
	}
	l.add(f, text, lim)
	return end, noProblem
}

// literal reads a field whose value is a literal (RFC 7541 §6.2). prefix is 6 if the field enters the dynamic table, and
// otherwise 4.
func (d *Decoder) literal(block []byte, at int, prefix uint, l *List, lim *Limits) (end int, p problem) {
	f := field{never: prefix == 4 && block[at]&literalNever != 0}
	text := len(l.buf)
	index, end, p := readInt(block, at, prefix)
	if p != noProblem {
		return at, p
	}
	switch {
	case index == 0:
		if end, p = l.readString(block, end); p != noProblem {
			return end, p
		}
		f.name = span{uint32(text), uint32(len(l.buf))}
		// A name that is sent as a literal may also be in the static table.
		f.index = uint8(known(l.buf[text:]))
	case index <= uint32(lastStatic):
		f.name, f.index = staticFields[index].name, staticFields[index].index
	default:
		e := d.table.get(index - uint32(lastStatic) - 1)
		if e == nil {
			return at, indexTooLarge
		}
		f.index = e.index
		if e.index != 0 {
			f.name = staticFields[e.index].name
		} else {
			l.buf = append(l.buf, d.table.buf[e.at:e.at+e.name]...)
			f.name = span{uint32(text), uint32(len(l.buf))}
		}
	}
	value := len(l.buf)
	if end, p = l.readString(block, end); p != noProblem {
		return end, p
	}
	f.value = span{uint32(value), uint32(len(l.buf))}
	if d.classes != nil {
		f.class = d.classes.classify(l.view(f.name), l.buf[value:])
	}
	if prefix == 6 {
		d.table.add(entry{class: f.class, index: f.index}, l.view(f.name), l.buf[value:])
	}
	l.add(f, text, lim)
	return end, noProblem
}

// known returns the Name of a name that was sent as a literal. HTTP/2 requires lower case, so a name with upper-case
// letters is unknown.
func known(name []byte) Name {
	n := NameOf(view.String(name))
	if n != 0 && staticEntries[n].name != string(name) {
		return 0
	}
	return n
}

// readString reads the string literal that begins at block[i] and appends it to the text of the list (RFC 7541 §5.2).
func (l *List) readString(block []byte, i int) (end int, p problem) {
	n, start, p := readInt(block, i, 7)
	if p != noProblem {
		return i, p
	}
	if uint64(n) > uint64(len(block)-start) {
		return i, truncated
	}
	end = start + int(n)
	if block[i]&huffmanString == 0 {
		l.buf = append(l.buf, block[start:end]...)
		return end, noProblem
	}
	if l.buf, p = appendDecoded(l.buf, block[start:end]); p != noProblem {
		return i, p
	}
	return end, noProblem
}
