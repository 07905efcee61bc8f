package jsonwire

import "reflect"

// object reads an object into a struct. It reads strings, the most common members, without a call of the method value.
func (d *decoder) object(p *decodePlan, m memory, start int) int {
	if d.depth--; d.depth < 0 {
		return d.refuse(ProblemDepth, start)
	}
	data, o := d.data, p.object
	track := o.watched || d.limits.DuplicateMembers
	var seen memberSet
	i, more := d.open(start, '}')
	for expected := 0; more; expected++ {
		nameAt, index := i, expected
		if expected < len(o.members) && (len(data)-i >= keyBlock && o.members[expected].matches(data, i) ||
			len(data)-i < keyBlock && o.members[expected].matchesEnd(data[i:])) {
			i += int(o.members[expected].keyLen)
		} else if index, i = d.name(o, i); i < 0 {
			return -1
		}
		if i < len(data) && data[i] <= ' ' {
			i = skipSpace(data, i)
		}
		if index == noMember {
			if i = d.unknown(nameAt, i); i < 0 {
				return -1
			}
			expected-- // the next member may be the expected member
		} else {
			expected = index
			f := &o.members[index]
			if track && !seen.add(index, len(o.members)) && d.limits.DuplicateMembers {
				return d.refuse(ProblemDuplicate, nameAt)
			}
			at, after := m.at(f.offset), -1
			switch {
			case (f.op == opString || f.op == opQuickText) && i < len(data) && data[i] == '"':
				var s string
				if s, after = d.string(i + 1); after >= 0 {
					if store(at, s); f.op == opQuickText && !f.value.checks.quick.holdsText(s) {
						after = d.judge(f.value, at, i, after)
					}
				}
			case f.op == opChecked && i < len(data):
				after = d.checked(f.value, at, i)
			case f.op == opIndirect:
				after = d.indirect(f, m, i)
			default:
				after = d.value(f.value, at, i)
			}
			if after < 0 {
				return -1
			}
			i = after
		}
		if i < len(data) && data[i] == ',' && i+1 < len(data) && data[i+1] > ' ' && d.elements > 1 {
			i++
			d.elements--
			continue
		}
		if i, more = d.next(i, '}'); i < 0 {
			return -1
		}
	}
	d.depth++
	if i >= 0 && o.watched && (!o.all.in(&seen) || o.requires != nil) && !d.ended(p, &seen, m, start) {
		return -1
	}
	return i
}

// open reads the opening bracket of an object or array. It returns the position of the first member or element. For an empty object
// or array, more is false and next is the position after the closing bracket.
func (d *decoder) open(i int, end byte) (next int, more bool) {
	i = skipSpace(d.data, i+1)
	if i < len(d.data) && d.data[i] == end {
		return i + 1, false
	}
	if d.elements--; d.elements < 0 {
		return d.refuse(ProblemElements, i), false
	}
	return i, true
}

// next reads the comma after a member or element, and returns the position of the next member or element. At the closing bracket,
// more is false and next is the position after the bracket.
func (d *decoder) next(i int, end byte) (next int, more bool) {
	data := d.data
	if i < len(data) && data[i] <= ' ' {
		i = skipSpace(data, i)
	}
	switch {
	case i >= len(data):
		return d.syntax(i), false
	case data[i] == end:
		return i + 1, false
	case data[i] != ',':
		return d.syntax(i), false
	}
	if d.elements--; d.elements < 0 {
		return d.refuse(ProblemElements, i), false
	}
	return skipSpace(data, i+1), true
}

// name reads the name of a member and the colon after the name. It returns the index of the member in the struct, or noMember.
func (d *decoder) name(o *objectPlan, i int) (index, next int) {
	name, next := d.nameText(i, o.longest)
	if next < 0 || len(name) > o.longest {
		return noMember, next
	}
	index = o.find(name)
	if index == noMember && !d.limits.CaseSensitive {
		index = o.findFolded(name)
	}
	return index, next
}

// nameText reads the name of a member and the colon after the name. The result is valid until the next call. If the name has more
// than longest bytes, its escapes are not decoded, because no member can have this name.
func (d *decoder) nameText(i, longest int) (name []byte, next int) {
	data := d.data
	if i >= len(data) || data[i] != '"' {
		return nil, d.syntax(i)
	}
	end := scanPlain(data, i+1)
	if end < len(data) && data[end] == '"' {
		name, next = data[i+1:end], end+1
	} else {
		var ok bool
		if next, _, ok = scanString(data, end); !ok {
			return nil, d.syntax(next)
		}
		if name = data[i+1 : next-1]; len(name) <= longest {
			var s string
			if s, next = d.oddString(i+1, end); next < 0 {
				return nil, next
			}
			name = viewedBytes(s)
		} else if d.limits.InvalidUTF8 && hasInvalid(name) {
			return nil, d.refuse(ProblemUTF8, i)
		}
	}
	if next >= len(data) || data[next] != ':' {
		if next = skipSpace(data, next); next >= len(data) || data[next] != ':' {
			return nil, d.syntax(next)
		}
	}
	return name, next + 1
}

// unknown reads the value of a member for which the struct has no field.
func (d *decoder) unknown(nameAt, i int) int {
	if d.limits.UnknownMembers {
		return d.refuse(ProblemUnknown, nameAt)
	}
	return d.ignored(i)
}

// indirect reads a member whose field is reached through pointers to embedded structs. It allocates embedded structs for nil
// pointers.
func (d *decoder) indirect(f *member, m memory, i int) int {
	for _, h := range f.extra.hops {
		m = m.at(h.offset)
		if m.isNil() {
			if h.closed {
				return d.mismatch(f.value, i)
			}
			if !d.charge(int(h.typ.Size())) {
				return -1
			}
			store(m, reflect.New(h.typ).UnsafePointer())
		}
		m = m.deref()
	}
	if f.extra.closed && m.at(f.offset).isNil() {
		return d.mismatch(f.value, i)
	}
	return d.value(f.value, m.at(f.offset), i)
}

// memberSet is a set of members of an object, by index.
type memberSet struct {
	few  [2]uint64
	many []uint64 // replaces few for structs with more than 128 members
}

// add adds the member with the given index to the set, and reports whether the set did not yet contain it. n is the number of
// members of the struct.
func (s *memberSet) add(index, n int) bool {
	if n > 64 {
		return s.addOfMany(index, n)
	}
	bit := uint64(1) << (uint(index) % 64)
	isNew := s.few[0]&bit == 0
	s.few[0] |= bit
	return isNew
}

// addOfMany does the work of the method add for structs with more than 64 members. It is not inlined, so that add can be inlined.
//
//go:noinline
func (s *memberSet) addOfMany(index, n int) bool {
	words := s.few[:]
	if n > 64*len(s.few) {
		if s.many == nil {
			s.many = make([]uint64, (n+63)/64)
		}
		words = s.many
	}
	word, bit := &words[index/64], uint64(1)<<(index%64)
	isNew := *word&bit == 0
	*word |= bit
	return isNew
}

func (s *memberSet) has(index int16) bool {
	if s.many != nil {
		return s.many[index/64]>>(index%64)&1 != 0
	}
	return int(index) < 64*len(s.few) && s.few[index/64]>>(index%64)&1 != 0
}

// in reports whether the set seen has all members of s. It returns false if s uses the field many.
func (s *memberSet) in(seen *memberSet) bool {
	return s.many == nil && seen.few[0]&s.few[0] == s.few[0] && seen.few[1]&s.few[1] == s.few[1]
}

// ended checks that the object that begins at start has all members that are required. It sets the defaults of missing members and
// of ignored members. It returns false if the text is refused.
func (d *decoder) ended(p *decodePlan, seen *memberSet, m memory, start int) bool {
	o := p.object
	for _, i := range o.required {
		if !seen.has(i) {
			d.missing(start, &o.names[i])
			return false
		}
	}
	for _, r := range o.requires {
		if seen.has(r.has) && !seen.has(r.needs) {
			d.missing(start, &o.names[r.needs])
			return false
		}
	}
	for _, i := range o.defaults {
		if !seen.has(i) || o.members[i].value.op == opIgnored {
			if !d.setDefault(&o.members[i], m, o.names[i].byAbsent) {
				return false
			}
		}
	}
	return true
}

// setDefault decodes text, the default of a member, into the field. Compile has checked that text is valid. setDefault returns
// false if d.room has no memory.
func (d *decoder) setDefault(f *member, m memory, text []byte) bool {
	run := decoder{data: text, limits: noLimits, depth: maxDepth, elements: noLimits.MaxElements, strings: d.strings, room: d.room, free: d.free - len(text)}
	i := skipSpace(text, 0)
	if value := f.value.taken(); value != f.value {
		taken := *f
		taken.value, f = value, &taken
	}
	if f.op == opIndirect {
		i = run.indirect(f, m, i)
	} else {
		i = run.value(f.value, m.at(f.offset), i)
	}
	d.strings, d.free = run.strings, run.free
	return i >= 0
}
