package hpack

// A Class is a category of fields. The importing package defines the categories, see [Classes].
type Class uint16

// A List contains the fields of a block, in order. The zero value is ready for use. A List can be used for any
// number of blocks and allocates only when it grows. Only one goroutine may use it at a time.
//
// The results of its methods are borrowed: they are valid until the next Decode or Reset, and must not be changed.
type List struct {
	buf      []byte
	fields   []field
	size     int // size as defined by RFC 9113 §6.5.2
	lines    int // number of fields that count, see Limits.MaxFields
	cookie   bool
	tooLarge bool
}

// A span is the bytes [start, end) of the list's buffer. If start has the bit inStatic, it is the bytes of
// staticText.
type span struct{ start, end uint32 }

const inStatic = 1 << 31

type field struct {
	name, value span
	class       Class
	index       uint8 // index of the first entry with this name in the static table, or 0
	never       bool  // never indexed (RFC 7541 §7.1.3)
}

// Reset empties the list.
func (l *List) Reset() {
	l.buf, l.fields, l.size, l.lines, l.cookie, l.tooLarge = l.buf[:0], l.fields[:0], 0, 0, false, false
}

// Len returns the number of fields.
func (l *List) Len() int { return len(l.fields) }

// Size returns the size of the fields as in RFC 9113 §6.5.2: their bytes, and 32 bytes for each field. It includes
// fields that were not stored.
func (l *List) Size() int { return l.size }

// TooLarge reports whether the block had more fields than the limits allow. The list does not contain these
// fields.
func (l *List) TooLarge() bool { return l.tooLarge }

// Field returns field i.
func (l *List) Field(i int) (name, value []byte) {
	f := &l.fields[i]
	return l.view(f.name), l.view(f.value)
}

// Value returns the value of field i.
func (l *List) Value(i int) []byte { return l.view(l.fields[i].value) }

// IsBlank reports whether c is a space or a horizontal tab.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' }

// TrimValue removes the white space around the value of field i. The class of the field does not change.
func (l *List) TrimValue(i int) {
	value, s := l.Value(i), &l.fields[i].value
	for len(value) > 0 && IsBlank(value[0]) {
		value = value[1:]
		s.start++
	}
	for n := len(value); n > 0 && IsBlank(value[n-1]); n-- {
		value = value[:n-1]
		s.end--
	}
}

// Name returns the Name of field i.
func (l *List) Name(i int) Name { return Name(l.fields[i].index) }

// Class returns the class of field i, or 0 if the decoder has no Classes.
func (l *List) Class(i int) Class { return l.fields[i].class }

// NeverIndexed reports whether a proxy must forward field i as never indexed.
func (l *List) NeverIndexed(i int) bool { return l.fields[i].never }

// Index returns the index of the first field at or after from with the given name, or -1. name must be in lower
// case.
func (l *List) Index(name string, from int) int {
	if known := NameOf(name); known != 0 {
		for i := from; i < len(l.fields); i++ {
			if l.fields[i].index == uint8(known) {
				return i
			}
		}
		return -1
	}
	for i := from; i < len(l.fields); i++ {
		if f := &l.fields[i]; f.index == 0 && string(l.view(f.name)) == name {
			return i
		}
	}
	return -1
}

// CopyTo copies the list to dst. The copy shares no memory with the list.
func (l *List) CopyTo(dst *List) {
	dst.buf = append(dst.buf[:0], l.buf...)
	dst.fields = append(dst.fields[:0], l.fields...)
	dst.size, dst.tooLarge = l.size, l.tooLarge
}

// Footprint returns the memory of the list in bytes, including unused memory.
func (l *List) Footprint() int { return cap(l.buf) + cap(l.fields)*fieldSize }

const fieldSize = 20

func (l *List) view(s span) []byte {
	if s.start&inStatic != 0 {
		return staticText[s.start&^inStatic : s.end : s.end]
	}
	return l.buf[s.start:s.end:s.end]
}

// add adds a field if the limits allow it. The text of the field is in the list's buffer and begins at text.
func (l *List) add(f field, text int, lim *Limits) {
	size := int(f.name.end-f.name.start&^inStatic) + int(f.value.end-f.value.start&^inStatic) + entryOverhead
	l.size += size
	if l.counts(Name(f.index)) {
		l.lines++
	}
	if l.size > lim.MaxList || l.lines > lim.MaxFields {
		l.tooLarge = true
	}
	if l.tooLarge {
		l.buf = l.buf[:text]
		return
	}
	l.fields = append(l.fields, f)
}

// counts reports whether the next field, with the given name, counts for Limits.MaxFields.
func (l *List) counts(name Name) bool {
	switch name {
	case Method, Path, Scheme, Status:
		return false
	case Cookie:
		another := l.cookie
		l.cookie = true
		return !another
	}
	return true
}
