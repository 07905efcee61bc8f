package jsonwire

import (
	"slices"
	"strconv"
	"strings"
)

// This file finds the JSON pointers of places in a text that is known to be
// well-formed, so that a decoder need not know where it is.

// locator reads a text once, and looks for places in the order of their offsets.
type locator struct {
	data  []byte
	steps []pointerStep
	order []int // indexes of problems by offset, those not yet met
	found []problem
	out   []Problem
}

// pointerStep is one level of a JSON pointer: a member's name, or an index.
type pointerStep struct {
	name  []byte // as it stands in the text, without quotes; nil for an element
	index int
}

// locate fills in the pointers of out, which are the problems found.
func locate(data []byte, found []problem, out []Problem) {
	l := locator{data: data, found: found, out: out, order: make([]int, len(found))}
	for i := range l.order {
		l.order[i] = i
	}
	slices.SortStableFunc(l.order, func(a, b int) int { return found[a].at - found[b].at })
	l.value(skipSpace(data, 0))
}

// meet fills in the pointers of the problems at offset i.
func (l *locator) meet(i int) {
	for len(l.order) > 0 && l.found[l.order[0]].at <= i {
		n := l.order[0]
		l.order = l.order[1:]
		l.out[n].Pointer = l.pointer(l.found[n])
	}
}

func (l *locator) value(i int) (next int) {
	l.meet(i)
	var end byte
	switch l.data[i] {
	case '{':
		end = '}'
	case '[':
		end = ']'
	default:
		next, _ = scanScalar(l.data, i)
		return next
	}
	i = skipSpace(l.data, i+1)
	l.steps = append(l.steps, pointerStep{})
	for n := 0; l.data[i] != end && len(l.order) > 0; n++ {
		step := &l.steps[len(l.steps)-1]
		step.index = n
		if end == '}' {
			after, _, _ := scanString(l.data, i+1)
			step.name = l.data[i+1 : after-1]
			l.meet(i)
			i = skipSpace(l.data, skipSpace(l.data, after)+1)
		}
		i = skipSpace(l.data, l.value(i))
		if len(l.order) > 0 && l.data[i] == ',' {
			i = skipSpace(l.data, i+1)
		}
	}
	l.steps = l.steps[:len(l.steps)-1]
	return i + 1
}

// pointer renders the way to where the locator is, and on to p, by RFC 6901.
func (l *locator) pointer(p problem) string {
	var b strings.Builder
	for _, s := range l.steps {
		b.WriteByte('/')
		if s.name == nil {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		var name Strings
		text, _ := name.unquote(s.name)
		writeToken(&b, text)
	}
	if p.kind == ProblemMissing {
		b.WriteByte('/')
		writeToken(&b, p.name)
	}
	b.WriteString(p.below)
	return b.String()
}

func writeToken(b *strings.Builder, token string) {
	if !strings.ContainsAny(token, "~/") {
		b.WriteString(token)
		return
	}
	b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
}
