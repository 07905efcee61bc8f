package jsonwire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file finds the JSON pointers of places in a text that is known to be
// well-formed, so that a decoder need not know where it is.

// locator reads a text once, and looks for places in the order of their offsets.
type locator struct {
	data    []byte
	steps   []pointerStep
	found   []problem // by offset, those not yet met
	out     []Problem // the same
	text    []byte    // the pointer that is being rendered
	strings Strings   // of the pointers
}

// pointerStep is one level of a JSON pointer: a member's name, or an index.
type pointerStep struct {
	name  []byte // as in the text, without quotes; nil for an element
	index int
}

// meet fills in the pointers of the problems at offset i.
func (l *locator) meet(i int) {
	for len(l.found) > 0 && l.found[0].at <= i {
		l.out[0].Pointer = l.pointer(&l.found[0])
		l.found, l.out = l.found[1:], l.out[1:]
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
	for n := 0; l.data[i] != end && len(l.found) > 0; n++ {
		step := &l.steps[len(l.steps)-1]
		step.index = n
		if end == '}' {
			after, _, _ := scanString(l.data, i+1)
			step.name = l.data[i+1 : after-1]
			l.meet(i)
			i = skipSpace(l.data, skipSpace(l.data, after)+1)
		}
		i = skipSpace(l.data, l.value(i))
		if len(l.found) > 0 && l.data[i] == ',' {
			i = skipSpace(l.data, i+1)
		}
	}
	l.steps = l.steps[:len(l.steps)-1]
	return i + 1
}

// maxPointer bounds the bytes of a JSON pointer in a Problem: a text of one long
// name and a hundred problems below it must not become a hundred long pointers.
const maxPointer = 1 << 10

// pointer renders the path to the locator's position, and on to p, by RFC 6901. A pointer that is too long is cut off
// and ends in "…".
func (l *locator) pointer(p *problem) string {
	b := l.text[:0]
	for _, s := range l.steps {
		if len(b) > maxPointer {
			break
		}
		if s.name == nil {
			b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
			continue
		}
		start := len(b) + 1
		b, _ = appendUnquoted(append(b, '/'), beginning(s.name))
		b = escapeToken(b, start)
	}
	if p.kind == ProblemMissing {
		start := len(b) + 1
		b = escapeToken(append(append(b, '/'), p.name...), start)
	}
	b = append(b, p.below...)
	if l.text = b; len(b) > maxPointer {
		cut := maxPointer
		for !utf8.RuneStart(b[cut]) {
			cut--
		}
		return string(append(b[:cut], "…"...))
	}
	return l.strings.copy(b, 2*len(b)*len(l.found))
}

// beginning is a name, or the beginning of a long one: to its first escape, or more
// than a pointer may have.
func beginning(name []byte) []byte {
	if len(name) <= maxPointer {
		return name
	}
	if len(name) > maxPointer+utf8.UTFMax {
		name = name[:maxPointer+utf8.UTFMax]
	}
	whole, _, _ := bytes.Cut(name, []byte{'\\'})
	return append(bytes.Clone(whole), "…"...)
}

// escapeToken escapes what b has from start on, one token of a pointer.
func escapeToken(b []byte, start int) []byte {
	if !bytes.ContainsAny(b[start:], "~/") {
		return b
	}
	return append(b[:start], strings.NewReplacer("~", "~0", "/", "~1").Replace(string(b[start:]))...)
}
