package jsonwire

import (
	"reflect"
	"strconv"
	"sync"
)

// A keyPlan describes how to read the keys of a map. It also holds a pool of working memory for the map's members.
type keyPlan struct {
	form   keyForm
	key    *decodePlan // plan for keys with UnmarshalText or UnmarshalJSON
	mapped mapped
	slot   int       // memory of a member in bytes, including a separate allocation of its key or value
	pool   sync.Pool // of *mapMember
}

// mapped identifies the map types that the decoder fills without reflect.
type mapped uint8

const (
	mappedOther mapped = iota
	mappedStrings
	mappedAny
)

// A mapMember is the working memory for one member of a map: a variable for its key, a variable for its value, and the addresses of
// both.
type mapMember struct {
	key, value     reflect.Value
	keyAt, valueAt memory
}

func (c *decodeCompiler) compileMap(p *decodePlan) {
	t := p.typ
	k := &keyPlan{slot: slotOf(t.Key()) + slotOf(t.Elem()) + 1}
	p.keys = k
	p.elem = c.compile(t.Elem(), false)
	switch key := t.Key(); {
	case reflect.PointerTo(key).Implements(textUnmarshalerType):
		k.form, k.key = keyText, c.newPlan(key)
		if !c.compileMethods(k.key, true) {
			k.form = keyUnsupported
		}
	case key.Kind() == reflect.String:
		k.form = keyString
	default:
		switch o := scalarOp(key); {
		case opInt8 <= o && o <= opInt64:
			k.form = keyInt
		case opUint8 <= o && o <= opUint64:
			k.form = keyUint
		}
	}
	if k.form == keyUnsupported {
		p.op = opUnsupported
	}
	switch {
	case p.elem.op == opChecked:
	case t == reflect.TypeFor[map[string]string]():
		k.mapped = mappedStrings
	case t == reflect.TypeFor[map[string]any]():
		k.mapped = mappedAny
	}
}

// mapping reads an object into a map.
func (d *decoder) mapping(p *decodePlan, m memory, start int) int {
	if d.depth--; d.depth < 0 {
		return d.refuse(ProblemDepth, start)
	}
	fresh := m.isNil()
	if fresh {
		if !d.charge(mapHead) {
			return -1
		}
		made := reflect.MakeMap(p.typ)
		store(m, made.UnsafePointer())
	}
	var next int
	if p.keys.mapped != mappedOther && p.elem.op != opChecked {
		next = d.commonMembers(p, m, start, fresh)
	} else {
		// After a panic in a user's method, the member is not returned to the pool.
		member, ok := p.keys.pool.Get().(*mapMember)
		if !ok {
			key, value := reflect.New(p.typ.Key()), reflect.New(p.typ.Elem())
			member = &mapMember{key.Elem(), value.Elem(), memoryOf(key), memoryOf(value)}
		}
		next = d.mapMembers(p, m, member, start)
		member.key.SetZero()
		member.value.SetZero()
		p.keys.pool.Put(member)
	}
	d.depth++
	return next
}

// mapMembers reads the members of an object into a map of any type. member is the working memory.
func (d *decoder) mapMembers(p *decodePlan, m memory, member *mapMember, start int) int {
	target, n := valueAt(p.typ, m), 0
	i, more := d.open(start, '}')
	for more {
		nameAt := i
		after := d.mapKey(p, member, i)
		if after < 0 {
			return -1
		}
		i = skipSpace(d.data, after)
		if i >= len(d.data) || d.data[i] != ':' {
			return d.syntax(i)
		}
		i = skipSpace(d.data, i+1)
		if d.limits.DuplicateMembers && target.MapIndex(member.key).IsValid() {
			return d.refuse(ProblemDuplicate, nameAt)
		}
		member.value.SetZero()
		if after = d.value(p.elem, member.valueAt, i); after < 0 {
			return -1
		}
		if !d.chargeEntry(n, p.keys.slot) {
			return -1
		}
		n++
		target.SetMapIndex(member.key, member.value)
		if i, more = d.next(after, '}'); i < 0 {
			return -1
		}
	}
	d.count = target.Len()
	return i
}

// mapKey reads the name of a member, converts it to the key type, and stores the key in member.key.
func (d *decoder) mapKey(p *decodePlan, member *mapMember, i int) int {
	if i >= len(d.data) || d.data[i] != '"' {
		return d.syntax(i)
	}
	if p.keys.form == keyText {
		member.key.SetZero()
		return d.value(p.keys.key, member.keyAt, i)
	}
	name, next := d.string(i + 1)
	if next < 0 {
		return next
	}
	bits := 0
	if p.keys.form != keyString {
		bits = p.typ.Key().Bits()
	}
	var err error
	switch p.keys.form {
	case keyString:
		store(member.keyAt, name)
	case keyInt:
		var n int64
		n, err = strconv.ParseInt(name, 10, bits)
		member.key.SetInt(n)
	case keyUint:
		var n uint64
		n, err = strconv.ParseUint(name, 10, bits)
		member.key.SetUint(n)
	}
	if err != nil {
		return d.unfit(ProblemName, p, i, nil)
	}
	return next
}

// commonMembers is mapMembers for the map types that are filled without reflect. fresh reports whether only the decoder refers to the
// map; such a map may be replaced by a larger map.
func (d *decoder) commonMembers(p *decodePlan, m memory, start int, fresh bool) int {
	var texts map[string]string
	var values map[string]any
	if p.keys.mapped == mappedStrings {
		texts = load[map[string]string](m)
	} else {
		values = load[map[string]any](m)
	}
	room := mapRoom{fixed: !fresh}
	i, more := d.open(start, '}')
	for more {
		nameAt := i
		var name string
		if name, i = d.nameString(i); i < 0 {
			return -1
		}
		i = skipSpace(d.data, i)
		had, after := len(texts)+len(values), 0
		if texts != nil {
			var text string
			if i < len(d.data) && d.data[i] == '"' {
				text, after = d.string(i + 1)
			} else {
				after = d.value(p.elem, memory{}, i) // only null is valid here, and null stores nothing
			}
			if after < 0 || !chargeMember(d, &texts, &room, i) {
				return -1
			}
			texts[name] = text
		} else {
			var v any
			v, after = d.any(i)
			if after < 0 || !chargeMember(d, &values, &room, i) {
				return -1
			}
			values[name] = v
		}
		if d.isDuplicate(had, len(texts)+len(values)) {
			return d.refuse(ProblemDuplicate, nameAt)
		}
		if i, more = d.next(after, '}'); i < 0 {
			return -1
		}
	}
	if texts != nil {
		store(m, texts)
	} else {
		store(m, values)
	}
	d.count = len(texts) + len(values)
	return i
}

// isDuplicate reports whether the text is refused because the member that was stored last repeats a name. had and has are the map's
// lengths before and after the member was stored. Comparing the lengths is faster than a lookup.
func (d *decoder) isDuplicate(had, has int) bool { return had == has && d.limits.DuplicateMembers }
