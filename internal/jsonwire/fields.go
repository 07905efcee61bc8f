package jsonwire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// keyBlock is the number of bytes of a key that are copied without a call. The rest of a longer key is copied separately.
const keyBlock = 16

// A field describes one member of an object: the offset of its value in the struct, the operation that writes the value, and the
// prepared key.
//
// All keys begin with a comma. After the members are written, the first comma is replaced by the opening brace. If the value is a
// string, the key ends with the opening quote of the value.
//
// A field contains only what writing the member needs, so that an object needs few cache lines. The names for errors are stored in
// plan.names.
type field struct {
	op     op             // copy of value.op, stored here so that no other cache line is needed to select the operation
	keyLen int            // number of bytes of key and long
	key    [keyBlock]byte // first bytes of the key
	offset uintptr
	omit   *omission // nil if the field is always written and not reached through a pointer
	value  *plan
	long   string // rest of the key after keyBlock bytes
}

// maxScalar is the length of the longest integer or boolean, -9223372036854775808, in bytes.
const maxScalar = 20

// compileFields fills p.fields and p.names for the struct type p.typ.
func (p *plan) compileFields(addressable bool) {
	for _, c := range dominantFields(p.typ) {
		f := field{}
		omit := omission{}
		t, addr := p.typ, addressable
		for i, index := range c.index {
			if i > 0 && t.Kind() == reflect.Pointer {
				omit.hops = append(omit.hops, f.offset)
				f.offset, t, addr = 0, t.Elem(), true
			}
			f.offset += t.Field(index).Offset
			t = t.Field(index).Type
		}
		f.value = compileValue(t, addr, c.quoted)
		f.op = f.value.op
		if c.omitEmpty {
			omit.empty = emptyTestOf(t)
		}
		if c.omitZero {
			omit.zero = zeroTestOf(t, addr)
		}
		if omit.hops != nil || omit.empty != emptyNever || omit.zero.kind != zeroNever {
			f.omit = &omit
		}
		for view := range views {
			if c.seenIn(view) {
				p.names[view] = append(p.names[view], c.name)
			}
		}
		for mode := range modes {
			if !c.seenIn(mode.view()) {
				continue
			}
			key := c.name
			if mode.html() {
				var b bytes.Buffer
				json.HTMLEscape(&b, []byte(key))
				key = b.String()
			}
			f.setKey(key)
			p.fields[mode] = append(p.fields[mode], f)
		}
	}
	for mode := escapings; mode < modes; mode++ { // most types have the same members in all views, which then share one slice
		if all := p.fields[mode%escapings]; len(p.fields[mode]) == len(all) {
			p.fields[mode] = all
		}
	}
}

// seenIn reports whether a view contains the member.
func (c *candidate) seenIn(v View) bool {
	return !(v == Answers && c.writeOnly || v == Requests && c.readOnly)
}

func (f *field) setKey(name string) {
	key := `,"` + name + `":`
	if f.op == opString {
		key += `"`
	}
	f.keyLen, f.key, f.long = len(key), [keyBlock]byte{}, ""
	if copy(f.key[:], key) < len(key) {
		f.long = key[keyBlock:]
	}
}

// compileValue compiles the plan of a field. quoted reports whether the field has the option "string". The option also applies to the
// target of a pointer, and has no effect on a type with methods.
func compileValue(t reflect.Type, addressable, quoted bool) *plan {
	p := compile(t, addressable)
	switch {
	case !quoted:
		return p
	case p.op == opPointer:
		return &plan{op: opPointer, typ: t, elem: compileValue(t.Elem(), true, true)}
	case opBool <= p.op && p.op <= opNumber:
		return &plan{op: opQuoted, typ: t, elem: p}
	}
	return p
}

// candidate is a struct field that may become a member of the object.
type candidate struct {
	name      string
	tagged    bool // the tag has a name
	twice     bool // the struct of the field is embedded more than once at this depth
	index     []int
	quoted    bool
	omitEmpty bool
	omitZero  bool
	readOnly  bool
	writeOnly bool
}

// dominantFields returns the fields of struct type t that become members, in the order in which they are written. If several fields
// have the same name, the field that is nested least deeply is used. If several of them are at that depth, the field with a name in its
// tag is used. If this rule does not select a single field, all of them are omitted without an error, as in encoding/json.
func dominantFields(t reflect.Type) []candidate {
	var order []string
	byName := map[string][]candidate{}
	for _, c := range candidates(t) {
		if byName[c.name] == nil {
			order = append(order, c.name)
		}
		byName[c.name] = append(byName[c.name], c)
	}
	rank := func(a, b candidate) int {
		if c := cmp.Compare(len(a.index), len(b.index)); c != 0 {
			return c
		}
		switch {
		case a.tagged == b.tagged:
			return 0
		case a.tagged:
			return -1
		}
		return 1
	}
	var winners []candidate
	for _, name := range order {
		same := byName[name]
		slices.SortStableFunc(same, rank)
		tie := same[0].twice || len(same) > 1 && rank(same[0], same[1]) == 0
		if !tie {
			winners = append(winners, same[0])
		}
	}
	slices.SortFunc(winners, func(a, b candidate) int { return slices.Compare(a.index, b.index) })
	return winners
}

// candidates returns the fields of t and of its embedded structs, in the order of depth. Each struct type is visited at its least depth
// only.
func candidates(t reflect.Type) []candidate {
	type level struct {
		typ   reflect.Type
		index []int
	}
	var found []candidate
	visited := map[reflect.Type]bool{}
	next, nextCount := []level{{typ: t}}, map[reflect.Type]int{t: 1}
	for len(next) > 0 {
		current, count := next, nextCount
		next, nextCount = nil, map[reflect.Type]int{}
		for _, l := range current {
			if visited[l.typ] {
				continue
			}
			visited[l.typ] = true
			for i := range l.typ.NumField() {
				sf := l.typ.Field(i)
				index := append(slices.Clone(l.index), i)
				c, embedded, ok := parseField(sf)
				switch {
				case !ok:
				case embedded != nil:
					if nextCount[embedded]++; nextCount[embedded] == 1 {
						next = append(next, level{embedded, index})
					}
				default:
					c.index, c.twice = index, count[l.typ] > 1
					found = append(found, c)
				}
			}
		}
	}
	return found
}

// parseField parses the tag of sf. For an embedded struct without a name it returns the struct's type in embedded. ok is false if sf is
// not encoded.
func parseField(sf reflect.StructField) (c candidate, embedded reflect.Type, ok bool) {
	t := sf.Type
	if t.Kind() == reflect.Pointer && (sf.Anonymous || t.Name() == "") {
		t = t.Elem()
	}
	// The exported fields of an unexported embedded struct are encoded.
	if !sf.IsExported() && !(sf.Anonymous && t.Kind() == reflect.Struct) {
		return c, nil, false
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return c, nil, false
	}
	name, options, _ := strings.Cut(tag, ",")
	c.name, c.tagged = name, isName(name)
	if !c.tagged {
		c.name = sf.Name
		if sf.Anonymous && t.Kind() == reflect.Struct {
			return c, t, true
		}
	}
	c.readOnly, _ = strconv.ParseBool(sf.Tag.Get("readOnly"))
	c.writeOnly, _ = strconv.ParseBool(sf.Tag.Get("writeOnly"))
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			c.omitEmpty = true
		case "omitzero":
			c.omitZero = true
		case "string":
			c.quoted = scalarOp(t) != opUnsupported
		}
	}
	return c, nil, true
}

// isName reports whether s is a valid name in a tag: letters, digits and punctuation other than quotes, backslash and comma.
func isName(s string) bool {
	for _, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) &&
			!strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) {
			return false
		}
	}
	return s != ""
}
