package jsonwire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// unmarshal reads a value whose type has its own method to decode JSON.
func (d *decoder) unmarshal(p *decodePlan, m memory, i int) int {
	if p.op == opTime && p.strict && d.data[i] == 'n' {
		return d.mismatch(p, i)
	}
	next := d.skip(i)
	if next < 0 {
		return next
	}
	raw := d.data[i:next:next]
	if d.limits.InvalidUTF8 && !d.wellFormed(raw) {
		return d.refuse(ProblemUTF8, i)
	}
	if !d.chargeRaw(p, raw) {
		return -1
	}
	var err error
	switch p.op {
	case opRaw:
		store(m, append(load[[]byte](m)[:0], raw...))
	case opTime:
		err = pointerAt[time.Time](m).UnmarshalJSON(raw)
	case opStandard:
		err = json.Unmarshal(d.given(raw), pointerTo(p.pointer, m))
	default:
		err = pointerTo(p.pointer, m).(json.Unmarshaler).UnmarshalJSON(d.given(raw))
	}
	if err != nil {
		return d.unfit(ProblemType, p, i, err)
	}
	return next
}

// given returns a copy of b for a user's method. encoding/json forbids the method to retain its argument. Without the copy, a method
// that breaks this rule would see what is later written to the memory of b.
func (d *decoder) given(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}
	return viewedBytes(d.strings.copy(b, len(b)))
}

// wellFormed reports whether the JSON text raw has neither invalid UTF-8 nor an unpaired surrogate.
func (d *decoder) wellFormed(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] == 'u' {
			r, size := unescape(raw[i:])
			if r == utf8.RuneError && surrogate(raw[i:]) {
				return false
			}
			i += size - 1
		} else {
			i++
		}
	}
	return true
}

// unmarshalText reads a string that UnmarshalText decodes.
func (d *decoder) unmarshalText(p *decodePlan, m memory, i int) int {
	text, next := d.lentText(i)
	if next < 0 {
		return next
	}
	if !d.charge(len(text)) {
		return -1
	}
	if err := pointerTo(p.pointer, m).(encoding.TextUnmarshaler).UnmarshalText(d.given(text)); err != nil {
		return d.unfit(ProblemType, p, i, err)
	}
	return next
}

// intoInterface reads a value into an interface. As in encoding/json, if the interface holds a pointer that is not nil, the value is
// stored where the pointer points.
func (d *decoder) intoInterface(p *decodePlan, m memory, i int) int {
	null := d.data[i] == 'n'
	if !m.isNil() {
		held := reflect.ValueOf(loadInterface(m, p.op == opInterfaceMethods))
		if held.Kind() == reflect.Pointer && !held.IsNil() && (!null || held.Type().Elem().Kind() == reflect.Pointer) &&
			memoryOf(held) != m && !endlessPointer(held.Type()) {
			return d.value(DecoderFor(held.Type().Elem()).plan, memoryOf(held), i)
		}
	}
	if null || p.op == opInterfaceMethods {
		return d.otherValue(p, m, i)
	}
	v, next := d.any(i)
	if next >= 0 {
		store(m, v)
	}
	return next
}

// quoted reads a scalar whose field has the option "string": the scalar is written inside a JSON string.
func (d *decoder) quoted(p *decodePlan, m memory, i int) int {
	if d.data[i] == 'n' {
		return d.value(p.elem, m, i)
	}
	if d.data[i] != '"' {
		return d.mismatch(p, i)
	}
	text, next := d.string(i + 1)
	if next >= 0 && !d.quotedText(p.elem, m, text) {
		return d.mismatch(p, i)
	}
	return next
}

// quotedText stores the scalar that is written in the string text. encoding/json parses such scalars less strictly than other
// scalars: it parses numbers with strconv.
func (d *decoder) quotedText(p *decodePlan, m memory, text string) bool {
	if text == "" {
		return false
	}
	if p.op == opPointer {
		if text[0] == 'n' {
			store(m, nilPointer)
			return text == "null"
		}
		if m.isNil() {
			d.free -= int(p.size)
			store(m, reflect.New(p.elem.typ).UnsafePointer())
		}
		return d.quotedText(p.elem, m.deref(), text)
	}
	if p.op == opChecked {
		return d.quotedText(p.elem, m, text)
	}
	if p.op == opStandard {
		return json.Unmarshal([]byte(text), pointerTo(p.pointer, m)) == nil
	}
	if p.op == opUnmarshal {
		return pointerTo(p.pointer, m).(json.Unmarshaler).UnmarshalJSON([]byte(text)) == nil
	}
	if text[0] == 'n' {
		return text == "null" && !p.strict
	}
	switch p.op {
	case opUnmarshalText:
		inner, ok := unquoted(text)
		return ok && pointerTo(p.pointer, m).(encoding.TextUnmarshaler).UnmarshalText([]byte(inner)) == nil
	case opString, opNumber:
		return d.quotedString(p, m, text)
	case opBool:
		store(m, text == "true")
		return text == "true" || text == "false"
	}
	if text[0] != '-' && text[0]-'0' > 9 {
		return false
	}
	v := valueAt(p.typ, m)
	switch {
	case opInt8 <= p.op && p.op <= opInt64:
		n, err := strconv.ParseInt(text, 10, p.typ.Bits())
		v.SetInt(n)
		return err == nil
	case opUint8 <= p.op && p.op <= opUint64:
		n, err := strconv.ParseUint(text, 10, p.typ.Bits())
		v.SetUint(n)
		return err == nil
	}
	n, err := strconv.ParseFloat(text, p.typ.Bits())
	v.SetFloat(n)
	return err == nil
}

// quotedString is quotedText for fields of type string and json.Number. A string has a second pair of quotes inside the first.
func (d *decoder) quotedString(p *decodePlan, m memory, text string) bool {
	if p.op == opNumber && (text[0] == '-' || text[0]-'0' <= 9) {
		store(m, text)
		return true
	}
	inner, ok := unquoted(text)
	if !ok || p.op == opNumber && !isNumber(inner) {
		return false
	}
	store(m, inner)
	return true
}

// unquoted returns the value of a text that is a whole JSON string.
func unquoted(text string) (string, bool) {
	if text[0] != '"' {
		return "", false
	}
	next, _, ok := scanString(viewedBytes(text), 1)
	if !ok || next != len(text) {
		return "", false
	}
	var s Strings
	raw := viewedBytes(text)[1 : len(text)-1]
	inner, _ := s.unquote(raw, replacementBytes(raw), len(text))
	return inner, true
}
