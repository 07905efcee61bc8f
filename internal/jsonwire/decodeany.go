package jsonwire

// any reads a value without a type, with the same result as encoding/json: nil, bool, float64, string, []any or
// map[string]any.
func (d *decoder) any(i int) (v any, next int) {
	if i >= len(d.data) {
		return nil, d.syntax(i)
	}
	switch c := d.data[i]; c {
	case '{':
		return d.anyObject(i)
	case '[':
		return d.anyArray(i)
	case '"':
		s, next := d.string(i + 1)
		if next < 0 || !d.charge(stringBox) {
			return nil, -1
		}
		return d.boxes.text(s), next
	case 't':
		return true, d.word(i, "true")
	case 'f':
		return false, d.word(i, "false")
	case 'n':
		return nil, d.word(i, "null")
	default:
		if c != '-' && c-'0' > 9 {
			return nil, d.syntax(i)
		}
		f, next, ok := d.float64(i)
		if !ok {
			return nil, d.badNumber(anyNumber, i, next)
		}
		if !d.charge(numberBox) {
			return nil, -1
		}
		return d.boxes.number(f), next
	}
}

// anyNumber is the plan whose type an error names if a number overflows float64.
var anyNumber = &decodePlan{op: opFloat64, typ: float64Type}

func (d *decoder) anyObject(start int) (v any, next int) {
	if d.depth--; d.depth < 0 {
		return nil, d.refuse(ProblemDepth, start)
	}
	if !d.charge(mapHead) {
		return nil, -1
	}
	made, room := map[string]any{}, mapRoom{}
	i, more := d.open(start, '}')
	for more {
		nameAt := i
		var name string
		if name, i = d.nameString(i); i < 0 {
			return nil, -1
		}
		i = skipSpace(d.data, i)
		value, after := d.any(i)
		if after < 0 {
			return nil, -1
		}
		if !chargeMember(d, &made, &room, after) {
			return nil, -1
		}
		n := len(made)
		if made[name] = value; d.isDuplicate(n, len(made)) {
			return nil, d.refuse(ProblemDuplicate, nameAt)
		}
		if i, more = d.next(after, '}'); i < 0 {
			return nil, -1
		}
	}
	d.depth++
	d.count = len(made)
	return made, i
}

func (d *decoder) anyArray(start int) (v any, next int) {
	if d.depth--; d.depth < 0 {
		return nil, d.refuse(ProblemDepth, start)
	}
	if !d.charge(sliceBox) {
		return nil, -1
	}
	made := []any{}
	i, more := d.open(start, ']')
	for more {
		value, after := d.any(i)
		if after < 0 {
			return nil, -1
		}
		if len(made) == cap(made) {
			if made = d.growAny(made, after); made == nil {
				return nil, -1
			}
		}
		made = append(made, value)
		if i, more = d.next(after, ']'); i < 0 {
			return nil, -1
		}
	}
	d.depth++
	d.count = len(made)
	return made, i
}

// growAny returns a copy of made with room for one more element, which ends before data[i:]. It doubles the capacity of a short slice.
// For a longer slice it counts the remaining elements in the text and makes room for all of them. The result is nil if d.room has no
// memory.
func (d *decoder) growAny(made []any, i int) []any {
	n := len(made)
	more := max(n, 1)
	if n >= countedFrom {
		more = max(n/4, 1+d.ahead(i, len("1,")))
	}
	if !d.chargeMany(more, interfaceSize) {
		return nil
	}
	larger := make([]any, n, n+more)
	copy(larger, made)
	return larger
}

// nameString reads the name of a member and the colon after the name. It returns a copy of the name.
func (d *decoder) nameString(i int) (name string, next int) {
	if i >= len(d.data) || d.data[i] != '"' {
		return "", d.syntax(i)
	}
	if name, next = d.string(i + 1); next < 0 {
		return "", next
	}
	if next = skipSpace(d.data, next); next >= len(d.data) || d.data[next] != ':' {
		return "", d.syntax(next)
	}
	return name, next + 1
}
