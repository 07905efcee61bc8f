package jsonwire

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// objectPlan is the part of a struct's plan that finds members by name.
//
// Most texts have their members in the order of the fields, so a name is first compared with the name of the next field. If the names
// differ, the hash of the name selects the only member that can have this name. This requires a seed for which the hashes of all names
// differ. The method index finds such a seed for almost every type. For the other types it fills the map exact instead of the table.
type objectPlan struct {
	members []member
	names   []memberNames
	table   []int16 // index of a member by hash, or noMember; the length is a power of two
	seed    uint64
	shift   uint8
	exact   map[string]int16 // used if there is no table
	folded  map[string]int16 // first member by folded name
	longest int              // maximum length of the name of a member in a text, in bytes, with every byte written as an escape

	// watched reports whether the decoder must check at the end of an object which members were present.
	watched bool

	// all has the required members, and the members with defaults that are not ignored. If an object has all of them,
	// decoder.ended is called only if requires is not nil.
	all      memberSet
	required []int16
	requires []dependency
	defaults []int16
}

const noMember = -1

// A dependency is a rule for two members, which it identifies by index: if the member has is present, the member needs must be
// present, too.
type dependency struct {
	has, needs int16
}

// A member describes one member of an object: the offset of its value in the struct, and how the value is read. The name is compared
// together with its quotes and colon, as it appears in the text, 16 bytes at once. A member fills one cache line.
type member struct {
	key    [2]uint64
	mask   [2]uint64 // 0xFF for each byte of key that is compared, 0 for the padding
	value  *decodePlan
	offset uintptr
	extra  *memberExtra // nil if the name fits into key and the field is not reached through a pointer
	keyLen int32
	op     op // value.op, opQuickText or opIndirect; stored here so that no other cache line is needed to select the operation
}

// memberExtra holds rarely used fields of a member.
type memberExtra struct {
	long   string // the part of the name with quotes and colon that does not fit into key
	hops   []hop  // pointers to embedded structs
	closed bool   // the field is an embedded pointer to an unexported type; encoding/json cannot set such a field
}

// A hop is a pointer to an embedded struct that is followed to reach a field.
type hop struct {
	offset uintptr
	typ    reflect.Type // type of the embedded struct
	closed bool         // the type is unexported: encoding/json cannot set the pointer
}

// memberNames holds the parts of a member that are not needed while its value is read: the name, for lookups and errors, and the
// default.
type memberNames struct {
	name     string
	byAbsent []byte // JSON of the default, or nil
}

// compileObject fills p.object for the struct type p.typ.
func (c *decodeCompiler) compileObject(p *decodePlan) {
	o := &objectPlan{folded: map[string]int16{}}
	p.object = o
	fields := dominantFields(p.typ)
	o.members = make([]member, len(fields))
	o.names = make([]memberNames, len(fields))
	all := make([]MemberRules, len(fields))
	for i, f := range fields {
		m, names := &o.members[i], &o.names[i]
		names.name = f.name
		m.setKey(`"` + f.name + `":`)
		field, owner := c.reachField(m, p.typ, f.index)
		if c.ruler != nil {
			var err error
			if all[i], err = c.ruler.Member(p.typ, f.name, field); err != nil {
				c.fail(ruleError(owner, field.Name, err))
			}
		}
		value := c.compileMember(field, f.quoted)
		if all[i].Refused || all[i].Ignored {
			outer := c.newPlan(field.Type)
			if outer.op, outer.elem = opRefused, value; all[i].Ignored {
				outer.op = opIgnored
			}
			value, all[i].Rules = outer, Rules{}
		}
		m.setValue(value)
		if rules := &all[i]; rules.Elem != nil || len(rules.Checks) > 0 {
			c.pending = append(c.pending, func() {
				m.setValue(c.withRules(value, &rules.Rules, owner.String()+"."+field.Name))
			})
		} else {
			// If the type of the field is recursive, its plan is not yet complete here.
			c.pending = append(c.pending, func() { m.setValue(value) })
		}
		if _, taken := o.folded[string(appendFolded(nil, []byte(f.name)))]; !taken {
			o.folded[string(appendFolded(nil, []byte(f.name)))] = int16(i)
		}
		o.longest = max(o.longest, 6*len(f.name)) // each byte of a name may be written as \u0000, which takes six bytes
	}
	o.index()
	c.watch(p, all)
}

// reachField stores in m how to reach the field with the given index path in the struct type t. It returns the field and the struct
// type that contains it.
func (c *decodeCompiler) reachField(m *member, t reflect.Type, path []int) (field reflect.StructField, owner reflect.Type) {
	for n, index := range path {
		if n > 0 && t.Kind() == reflect.Pointer {
			m.more().hops = append(m.more().hops, hop{m.offset, t.Elem(), !field.IsExported()})
			m.offset, t = 0, t.Elem()
		}
		owner, field = t, t.Field(index)
		m.offset += field.Offset
		t = field.Type
	}
	if !field.IsExported() && t.Kind() == reflect.Pointer {
		m.more().closed = true
	}
	return field, owner
}

// compileMember returns the plan of a field, without rules.
func (c *decodeCompiler) compileMember(field reflect.StructField, quoted bool) *decodePlan {
	if !field.IsExported() && field.Type.Kind() == reflect.Struct {
		// The field is an embedded struct of an unexported type, to which a tag gives a name. encoding/json cannot call methods on
		// such a field, so only its kind counts.
		p := c.newPlan(field.Type)
		c.compileKind(p)
		return p
	}
	p := c.compile(field.Type, false)
	if !quoted {
		return p
	}
	outer := c.newPlan(field.Type)
	outer.op, outer.elem = opQuoted, p
	return outer
}

func (m *member) more() *memberExtra {
	if m.extra == nil {
		m.extra = &memberExtra{}
	}
	return m.extra
}

func (m *member) setValue(p *decodePlan) {
	m.value, m.op = p, p.op
	if p.op == opChecked && p.checks.quick.kind == quickText {
		m.op = opQuickText
	}
	if m.extra != nil && m.extra.indirect() {
		m.op = opIndirect
	}
}

// indirect reports whether a pointer must be followed to reach the field.
func (x *memberExtra) indirect() bool { return len(x.hops) > 0 || x.closed }

func (m *member) setKey(key string) {
	var block, mask [2 * 8]byte
	for i := range copy(block[:], key) {
		mask[i] = 0xFF
	}
	m.keyLen = int32(len(key))
	for i := range m.key {
		m.key[i], m.mask[i] = load64(block[:], 8*i), load64(mask[:], 8*i)
	}
	if len(key) > len(block) {
		m.more().long = key[len(block):]
	}
}

// matches reports whether data contains the quoted name of the member and a colon at i. data must have at least keyBlock bytes from i
// on.
func (m *member) matches(data []byte, i int) bool {
	if (load64(data, i)^m.key[0])&m.mask[0]|(load64(data, i+8)^m.key[1])&m.mask[1] != 0 {
		return false
	}
	return m.extra == nil || strings.HasPrefix(bytesString(data[i+keyBlock:]), m.extra.long)
}

// matchesEnd does the work of the method matches for the last bytes of a text, which are fewer than keyBlock. It pads them with zeros,
// which no key contains.
func (m *member) matchesEnd(rest []byte) bool {
	var block [keyBlock]byte
	copy(block[:], rest)
	return m.matches(block[:], 0)
}

// watch prepares the checks that are made at the end of an object.
func (c *decodeCompiler) watch(p *decodePlan, all []MemberRules) {
	o := p.object
	path := func(i int) string { return fmt.Sprintf("%s, member %q", p.typ, o.names[i].name) }
	for i := range all {
		rules := &all[i]
		if rules.Required {
			o.required = append(o.required, int16(i))
			o.all.add(i, len(all))
		}
		if rules.Default != nil {
			o.defaults = append(o.defaults, int16(i))
			if rules.Ignored {
				// The default of an ignored member is set even if the member is present. With a requires that is not nil, the method
				// ended is always called.
				o.requires = append([]dependency{}, o.requires...)
			} else {
				o.all.add(i, len(all))
			}
			o.names[i].byAbsent = rules.Default
			c.pending = append(c.pending, func() { c.tryDefault(p, i, path(i)) })
		}
		for _, name := range rules.Requires {
			needs := o.find([]byte(name))
			if needs == noMember {
				c.fail(fmt.Errorf("%s requires %q, which %s does not have", path(i), name, p.typ))
				continue
			}
			o.requires = append(o.requires, dependency{int16(i), int16(needs)})
		}
	}
	o.watched = o.required != nil || o.requires != nil || o.defaults != nil
}

// tryDefault decodes a default once, so that Compile returns an error for an invalid default.
func (c *decodeCompiler) tryDefault(p *decodePlan, i int, path string) {
	// The step is appended a second time, so that it runs after the steps that apply rules, which are already in c.pending.
	c.pending = append(c.pending, func() {
		if c.err != nil {
			return
		}
		o := p.object
		d := decoder{limits: noLimits, data: o.names[i].byAbsent}
		d.depth = maxDepth
		value := o.members[i].value.taken()
		made := reflect.New(value.typ)
		next := d.text(value, memoryOf(made))
		if next < 0 {
			c.fail(fmt.Errorf("%s: invalid default %s", path, o.names[i].byAbsent))
		}
	})
}

// index fills the table with a seed for which the hashes of all names differ. If it finds no such seed, it fills the map exact.
func (o *objectPlan) index() {
	if len(o.members) == 0 {
		o.table, o.shift = []int16{noMember}, 63
		return
	}
	for size := bits.Len(uint(2*len(o.members) - 1)); size <= bits.Len(uint(16*len(o.members))); size++ {
		o.table, o.shift = make([]int16, 1<<size), uint8(64-size)
		for attempt := range uint64(32) {
			o.seed = (attempt + 1) * 0x9E3779B97F4A7C15
			if o.fillTable() {
				return
			}
		}
	}
	o.table, o.exact = nil, map[string]int16{}
	for i := range o.names {
		o.exact[o.names[i].name] = int16(i)
	}
}

// fillTable fills the table by the current seed. It returns false if two names collide.
func (o *objectPlan) fillTable() bool {
	for i := range o.table {
		o.table[i] = noMember
	}
	for i := range o.names {
		slot := &o.table[o.hash([]byte(o.names[i].name))]
		if *slot != noMember {
			return false
		}
		*slot = int16(i)
	}
	return true
}

// hash returns the slot of a name in the table. It depends on the length and on the first and last eight bytes of the name.
func (o *objectPlan) hash(name []byte) uint64 {
	var first, last uint64
	switch n := len(name); {
	case n >= 8:
		first, last = load64(name, 0), load64(name, n-8)
	case n >= 4:
		first, last = uint64(word32(bytesString(name), 0)), uint64(word32(bytesString(name), n-4))
	case n > 0:
		first, last = uint64(name[0])|uint64(name[n/2])<<8, uint64(name[n-1])
	}
	h := (first ^ o.seed) * 0xFF51AFD7ED558CCD
	h = (h ^ h>>32 ^ last ^ uint64(len(name))<<56) * 0xC4CEB9FE1A85EC53
	return h >> o.shift
}

// find returns the index of the member with exactly this name, or noMember if no member has it.
func (o *objectPlan) find(name []byte) int {
	if o.exact != nil {
		if i, ok := o.exact[string(name)]; ok {
			return int(i)
		}
		return noMember
	}
	i := int(o.table[o.hash(name)&uint64(len(o.table)-1)])
	if i == noMember || o.names[i].name != string(name) {
		return noMember
	}
	return i
}

// findFolded returns the index of the first member with this name in any case, or noMember.
func (o *objectPlan) findFolded(name []byte) int {
	var room [64]byte
	if i, ok := o.folded[string(appendFolded(room[:0], name))]; ok {
		return int(i)
	}
	return noMember
}

// appendFolded appends the folded form of name to dst. Names that differ only in case have the same folded form. As in encoding/json,
// each character is replaced by the smallest character that is equal to it except for case.
func appendFolded(dst, name []byte) []byte {
	for len(name) > 0 {
		if c := name[0]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			dst, name = append(dst, c), name[1:]
			continue
		}
		r, size := utf8.DecodeRune(name)
		dst, name = utf8.AppendRune(dst, foldRune(r)), name[size:]
	}
	return dst
}

// foldRune returns the smallest character that is equal to r except for case.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
