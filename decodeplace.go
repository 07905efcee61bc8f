package dunlin

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// This file finds the place in JSON that encoding/json refused. It runs only
// then, and reads the body a second time: encoding/json names Go fields where
// the client knows pointers, does not say where an unknown member stands, and
// words its errors differently from release to release.

// maxNesting is the depth of objects and arrays that encoding/json allows.
const maxNesting = 10_000

// A placeFinder reads one JSON value by recursive descent and, beside it, the
// Go type that it is decoded into. Invariant: body[:pos] is well-formed.
type placeFinder struct {
	body    []byte
	pos     int
	steps   []pointerStep
	members map[reflect.Type][]member // of the struct types met so far
	wrong   *misfit                   // the first value that does not fit its type
}

// pointerStep is one level of a JSON pointer: a member's name, or an index.
type pointerStep struct {
	object bool
	name   string
	index  int
}

// A misfit is a value that is well-formed but cannot be decoded.
type misfit struct {
	pointer string
	offset  int          // in bytes, of the value or of the unknown member's name
	unknown bool         // the member is not known
	got     string       // else: what the value is in the words of JSON
	want    reflect.Type // and what it is decoded into
}

// syntaxErrorAt returns the offset of the first byte that may not stand where it
// does, len(body) when the value ends too early, and false when the body is
// well-formed.
func syntaxErrorAt(body []byte) (offset int, found bool) {
	f := placeFinder{body: body}
	if !f.value(nil) {
		return f.pos, true
	}
	f.space()
	return f.pos, f.pos < len(body)
}

// findMisfit returns the first part of well-formed JSON that does not fit t, nil
// when it finds none.
func findMisfit(body []byte, t reflect.Type) *misfit {
	f := placeFinder{body: body, members: make(map[reflect.Type][]member)}
	f.value(t)
	return f.wrong
}

// value reads a value that is decoded into a t; nil stands for any. It is false
// when the value is malformed, at pos, or does not fit.
func (f *placeFinder) value(t reflect.Type) bool {
	f.space()
	start, c := f.pos, f.peek()
	if c == 'n' && t != nil && t.Kind() == reflect.Pointer {
		t = nil // null fits every pointer, whatever its type makes of it
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	inner := t
	if t != nil && (decodesItself(t) || t.Kind() == reflect.Interface && t.NumMethod() == 0) {
		inner = nil
	}
	var ok bool
	switch {
	case c == '{' || c == '[':
		if inner != nil && !fitsContainer(c, inner.Kind()) {
			return f.misfit(start, c, t)
		}
		if len(f.steps) == maxNesting {
			return false
		}
		f.pos++
		f.steps = append(f.steps, pointerStep{object: c == '{'})
		if c == '{' {
			ok = f.object(inner)
		} else {
			ok = f.array(inner)
		}
		if ok {
			f.steps = f.steps[:len(f.steps)-1]
		}
	case c == '"':
		ok = f.string()
	case c == '-' || isDecimal(c):
		ok = f.number()
	default:
		ok = f.word("null") || f.word("true") || f.word("false")
	}
	if ok && t != nil && !fits(f.body[start:f.pos], t) {
		return f.misfit(start, c, t)
	}
	return ok
}

func (f *placeFinder) object(t reflect.Type) bool {
	if f.space(); f.peek() == '}' {
		f.pos++
		return true
	}
	for {
		f.space()
		start := f.pos
		if f.peek() != '"' || !f.string() {
			return false
		}
		var element reflect.Type
		if t != nil {
			_ = json.Unmarshal(f.body[start:f.pos], &f.steps[len(f.steps)-1].name)
			var ok bool
			if element, ok = f.member(t, start); !ok {
				return false
			}
		}
		if f.space(); f.peek() != ':' {
			return false
		}
		f.pos++
		if !f.value(element) {
			return false
		}
		if more, ok := f.next('}'); !ok || !more {
			return ok
		}
	}
}

func (f *placeFinder) array(t reflect.Type) bool {
	if t != nil {
		t = t.Elem()
	}
	if f.space(); f.peek() == ']' {
		f.pos++
		return true
	}
	for {
		if !f.value(t) {
			return false
		}
		if more, ok := f.next(']'); !ok || !more {
			return ok
		}
		f.steps[len(f.steps)-1].index++
	}
}

// next reads the comma before another element, or the end of the container.
func (f *placeFinder) next(end byte) (more, ok bool) {
	f.space()
	c := f.peek()
	if c == ',' || c == end {
		f.pos++
		return c == ',', true
	}
	return false, false
}

// member returns the type that the member whose name starts at offset is
// decoded into; false when t, a struct or a map, cannot have it.
func (f *placeFinder) member(t reflect.Type, offset int) (reflect.Type, bool) {
	name := f.steps[len(f.steps)-1].name
	if t.Kind() == reflect.Map {
		key := t.Key()
		if key.Kind() != reflect.String || decodesItself(key) {
			probe := slices.Concat([]byte("{"), f.body[offset:f.pos], []byte(":null}"))
			if json.Unmarshal(probe, reflect.New(reflect.MapOf(key, reflect.TypeFor[any]())).Interface()) != nil {
				return nil, f.misfit(offset, '"', key)
			}
		}
		return t.Elem(), true
	}
	members, known := f.members[t]
	if !known {
		members = membersOf(t)
		f.members[t] = members
	}
	for i := range members {
		if members[i].name == name {
			return members[i].decoded, true
		}
	}
	for i := range members {
		if strings.EqualFold(members[i].name, name) {
			return members[i].decoded, true
		}
	}
	f.wrong = &misfit{pointer: pointer(f.steps), offset: offset, unknown: true}
	return nil, false
}

// misfit notes a value that begins with c at offset and cannot become a t.
func (f *placeFinder) misfit(offset int, c byte, t reflect.Type) bool {
	f.wrong = &misfit{pointer: pointer(f.steps), offset: offset, want: t, got: "a number"}
	switch c {
	case '{':
		f.wrong.got = "an object"
	case '[':
		f.wrong.got = "an array"
	case '"':
		f.wrong.got = "a string"
	case 't', 'f':
		f.wrong.got = "a boolean"
	case 'n':
		f.wrong.got = "null"
	default:
		if number := f.body[offset:f.pos]; len(number) <= 32 {
			f.wrong.got = "the number " + string(number)
		}
	}
	return false
}

// peek returns the next byte, 0 at the end of the body.
func (f *placeFinder) peek() byte {
	if f.pos < len(f.body) {
		return f.body[f.pos]
	}
	return 0
}

func (f *placeFinder) space() {
	for f.pos < len(f.body) && strings.IndexByte(" \t\r\n", f.body[f.pos]) >= 0 {
		f.pos++
	}
}

// word reads one of the three words; on failure it leaves pos at the byte that
// is wrong if the first was right.
func (f *placeFinder) word(w string) bool {
	if f.peek() != w[0] {
		return false
	}
	for i := range len(w) {
		if f.peek() != w[i] {
			return false
		}
		f.pos++
	}
	return true
}

// string reads a string. Like encoding/json it lets invalid UTF-8 and unpaired
// surrogates pass.
func (f *placeFinder) string() bool {
	for f.pos++; f.pos < len(f.body); f.pos++ {
		switch c := f.body[f.pos]; {
		case c == '"':
			f.pos++
			return true
		case c < ' ':
			return false
		case c == '\\':
			f.pos++
			if f.peek() == 'u' {
				for range 4 {
					f.pos++
					if unhex(f.peek()) < 0 {
						return false
					}
				}
			} else if strings.IndexByte(`"\/bfnrt`, f.peek()) < 0 {
				return false
			}
		}
	}
	return false
}

// number reads a number, RFC 8259 section 6.
func (f *placeFinder) number() bool {
	if f.peek() == '-' {
		f.pos++
	}
	if f.peek() == '0' {
		f.pos++
	} else if !f.digits() {
		return false
	}
	if f.peek() == '.' {
		f.pos++
		if !f.digits() {
			return false
		}
	}
	if f.peek()|0x20 == 'e' {
		f.pos++
		if c := f.peek(); c == '+' || c == '-' {
			f.pos++
		}
		return f.digits()
	}
	return true
}

func (f *placeFinder) digits() bool {
	start := f.pos
	for isDecimal(f.peek()) {
		f.pos++
	}
	return f.pos > start
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

// pointer renders steps by RFC 6901.
func pointer(steps []pointerStep) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, s := range steps {
		b.WriteByte('/')
		if s.object {
			b.WriteString(escape.Replace(s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether t has a method that does the decoding.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(textUnmarshaler)
}
