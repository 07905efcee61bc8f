package jsonwire

import (
	"encoding/json"
	"strconv"
)

// A mode is a View combined with one of two ways to escape strings.
type mode uint8

const (
	modeHTML  mode = iota // <, > and & escaped
	modePlain             // <, > and & unchanged
	escapings
	modes = escapings * mode(views)
)

func modeOf(o Options) mode {
	m := modeHTML
	if o.NoEscapeHTML {
		m = modePlain
	}
	return m + escapings*mode(o.View)
}

// html reports whether <, > and & are escaped.
func (m mode) html() bool { return m%escapings == modeHTML }

func (m mode) view() View { return View(m / escapings) }

func (m mode) escapes() *escapeSet { return &escapeSets[m%escapings] }

// encoder is the state of one call, on the stack of that call.
type encoder struct {
	mode  mode
	empty bool // write nil slices and nil maps like empty slices and maps
	esc   *escapeSet

	// depth is the number of pointers, slices and maps that contain the current value. If depth exceeds maxDepthUnchecked, they are
	// recorded in seen, to detect cycles.
	depth int
	seen  map[visit]struct{}
}

// maxDepthUnchecked is the depth up to which cycles are not detected, because recording every pointer is slow and real data is less
// deep. encoding/json uses the same value.
const maxDepthUnchecked = 1000

// A visit identifies a pointer, slice or map that contains the current value. The plan distinguishes a pointer to a struct from a
// pointer to the first field of the struct. The length distinguishes a slice from a prefix of the slice.
type visit struct {
	plan   *plan
	first  memory
	length int
}

// enter records that the encoder enters v, and returns an error for a cycle. After each successful call the caller must call leave.
func (e *encoder) enter(v visit) *Error {
	if e.depth++; e.depth <= maxDepthUnchecked {
		return nil
	}
	return e.enterDeep(v)
}

func (e *encoder) enterDeep(v visit) *Error {
	if _, cycle := e.seen[v]; cycle {
		// The field Value of the error remains unset, because a copy of the value would contain the cycle.
		return &Error{Err: &json.UnsupportedValueError{
			Str: "encountered a cycle via " + v.plan.typ.String(),
		}}
	}
	if e.seen == nil {
		e.seen = map[visit]struct{}{}
	}
	e.seen[v] = struct{}{}
	return nil
}

func (e *encoder) leave(v visit) {
	if e.depth > maxDepthUnchecked {
		delete(e.seen, v)
	}
	e.depth--
}

// value appends the JSON of the value at m. p is the plan of the value's type.
func (e *encoder) value(dst []byte, p *plan, m memory) ([]byte, *Error) {
	switch p.op {
	case opBool:
		return strconv.AppendBool(dst, load[bool](m)), nil
	case opInt8:
		return appendInt(dst, int64(load[int8](m))), nil
	case opInt16:
		return appendInt(dst, int64(load[int16](m))), nil
	case opInt32:
		return appendInt(dst, int64(load[int32](m))), nil
	case opInt64:
		return appendInt(dst, load[int64](m)), nil
	case opUint8:
		return appendUint(dst, uint64(load[uint8](m))), nil
	case opUint16:
		return appendUint(dst, uint64(load[uint16](m))), nil
	case opUint32:
		return appendUint(dst, uint64(load[uint32](m))), nil
	case opUint64:
		return appendUint(dst, load[uint64](m)), nil
	case opFloat32:
		return appendFloat(dst, float64(load[float32](m)), 32, p)
	case opFloat64:
		return appendFloat(dst, load[float64](m), 64, p)
	case opString:
		return appendString(dst, load[string](m), e.esc), nil
	case opNumber:
		return appendNumber(dst, load[string](m))
	case opQuoted:
		return e.quoted(dst, p.elem, m)
	case opBytes:
		if m.isNil() {
			return e.none(dst, `""`), nil
		}
		return appendBase64(dst, load[[]byte](m)), nil
	case opTime:
		return appendTime(dst, p, m)
	case opStruct:
		return e.object(dst, p, m)
	case opSlice:
		return e.slice(dst, p, m)
	case opArray:
		return e.elements(dst, p, m, p.length)
	case opPointer:
		return e.pointer(dst, p, m)
	case opWrapped:
		if !load[bool](m.at(p.wrap.set)) {
			return append(dst, "null"...), nil
		}
		return e.value(dst, p.elem, m.at(p.wrap.value))
	case opMap:
		return e.mapping(dst, p, m)
	case opInterface:
		return e.dynamic(dst, loadInterface(m, false))
	case opInterfaceMethods:
		return e.dynamic(dst, loadInterface(m, true))
	case opUnsupported:
		return dst, &Error{Err: &json.UnsupportedTypeError{Type: p.typ}}
	}
	return e.method(dst, p, m)
}

// object appends a struct. It writes strings and integers of 32 and 64 bits, the most common members, without a call of the method
// value. It makes room for the key and the value of such a member in one step.
func (e *encoder) object(dst []byte, p *plan, m memory) ([]byte, *Error) {
	start := len(dst)
	fields := p.fields[e.mode]
	for i := range fields {
		f := &fields[i]
		var at memory
		if f.omit == nil {
			at = m.at(f.offset)
		} else {
			var out bool
			if at, out = f.leftOut(m); out {
				continue
			}
		}
		n := len(dst)
		if need := f.keyLen + keyBlock + maxScalar; cap(dst)-n < need {
			dst = grow(dst, need)
		}
		b := dst[:cap(dst)]
		*(*[keyBlock]byte)(b[n:]) = f.key
		if f.keyLen > keyBlock {
			copy(b[n+keyBlock:], f.long)
		}
		n += f.keyLen
		switch f.op {
		case opString:
			// Most strings are short and fit into the room that was made.
			text := load[string](at)
			if size := len(text); uint(size-8) <= 8 {
				low, high := word64(text, 0), word64(text, size-8)
				putWord64(b, n, low)
				putWord64(b, n+size-8, high)
				if e.esc.find(low)|e.esc.find(high) == 0 {
					b[n+size] = '"'
					dst = b[:n+size+1]
					continue
				}
			}
			dst = appendStringTail(b[:n], text, e.esc)
		case opInt64:
			dst = b[:putInt(b, n, load[int64](at))]
		case opInt32:
			dst = b[:putInt(b, n, int64(load[int32](at)))]
		default:
			var err *Error
			if dst, err = e.value(b[:n], f.value, at); err != nil {
				return dst, err.within(p.names[e.mode.view()][i])
			}
		}
	}
	if len(dst) == start {
		return append(dst, "{}"...), nil
	}
	dst[start] = '{'
	return append(dst, '}'), nil
}

func (e *encoder) slice(dst []byte, p *plan, m memory) ([]byte, *Error) {
	if m.isNil() {
		return e.none(dst, "[]"), nil
	}
	first, n := m.slice()
	v := visit{p, first, n}
	if err := e.enter(v); err != nil {
		return dst, err
	}
	dst, err := e.elements(dst, p, first, n)
	e.leave(v)
	return dst, err
}

// none appends the encoding of a nil slice or map.
func (e *encoder) none(dst []byte, empty string) []byte {
	if e.empty {
		return append(dst, empty...)
	}
	return append(dst, "null"...)
}

// elements appends an array of the n consecutive values that begin at m.
func (e *encoder) elements(dst []byte, p *plan, m memory, n int) ([]byte, *Error) {
	dst = append(dst, '[')
	var err *Error
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
			m = m.at(p.size)
		}
		if p.elem.op == opStruct { // faster than a call of value
			dst, err = e.object(dst, p.elem, m)
		} else {
			dst, err = e.value(dst, p.elem, m)
		}
		if err != nil {
			return dst, err.within(strconv.Itoa(i))
		}
	}
	return append(dst, ']'), nil
}

func (e *encoder) pointer(dst []byte, p *plan, m memory) ([]byte, *Error) {
	if m.isNil() {
		return append(dst, "null"...), nil
	}
	to := m.deref()
	v := visit{p, to, 0}
	if err := e.enter(v); err != nil {
		return dst, err
	}
	dst, err := e.value(dst, p.elem, to)
	e.leave(v)
	return dst, err
}

// dynamic appends the value that an interface holds.
func (e *encoder) dynamic(dst []byte, v any) ([]byte, *Error) {
	// nil, strings and booleans are frequent in interfaces and need no plan.
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, v, e.esc), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	}
	p := planOf(v)
	return e.value(dst, p, held(&v, p.direct))
}

// quoted appends a scalar whose field has the option "string": the scalar is written inside a JSON string.
func (e *encoder) quoted(dst []byte, p *plan, m memory) ([]byte, *Error) {
	if p.op == opString {
		// Append the string's JSON. Append the JSON of that JSON after it, and move it to the start.
		start := len(dst)
		dst = appendString(dst, load[string](m), e.esc)
		once := len(dst)
		dst = appendString(dst, bytesString(dst[start:once]), e.esc)
		return append(dst[:start], dst[once:]...), nil
	}
	dst, err := e.value(append(dst, '"'), p, m)
	return append(dst, '"'), err
}
