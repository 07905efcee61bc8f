package jsonwire

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Refusal is the error of a text that a Decoder refuses. It describes the first problem, but invalid JSON and exceeded limits
// take precedence over other problems. It does not contain the value.
type Refusal struct {
	Kind    ProblemKind
	Pointer string // RFC 6901; empty for the whole text and for invalid JSON
	// Offset and End delimit the value, in bytes from the start of the text. For unknown and repeated members they delimit the
	// name. For a missing member they delimit the object. For invalid JSON, Offset is the position of the first invalid byte, or
	// the length of the text if the text ends too early.
	Offset, End int
	Want        reflect.Type // for ProblemType and ProblemName: the type that does not accept the value or name
	Quoted      bool         // for ProblemType: the field has the option "string"
	Err         error        // for ProblemType: the error of the user's method, or nil
}

// ProblemKind is the kind of a problem in a text.
type ProblemKind uint8

const (
	problemNone      ProblemKind = iota
	ProblemSyntax                // invalid JSON
	ProblemDepth                 // nested deeper than Limits.MaxDepth
	ProblemElements              // more than Limits.MaxElements
	ProblemNumber                // a number longer than Limits.MaxNumber
	ProblemType                  // the value does not fit its type
	ProblemName                  // the name is not a valid key of the map
	ProblemUnknown               // a member that the struct does not have
	ProblemDuplicate             // a duplicate member
	ProblemUTF8                  // a string with invalid UTF-8 or an unpaired surrogate
	ProblemMissing               // a required member is absent
	ProblemRule                  // the value violates a rule
	ProblemMemory                // the Room has no memory for the value
)

var problemNames = [...]string{
	"", "invalid JSON", "too deep", "too many elements", "number too long", "unfit value", "unfit name", "unknown member",
	"member twice", "invalid UTF-8", "missing member", "rule broken", "no memory",
}

func (k ProblemKind) String() string { return problemNames[k] }

func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "decode JSON: %s at offset %d", r.Kind, r.Offset)
	if r.Pointer != "" {
		b.WriteString(" (" + r.Pointer + ")")
	}
	if r.Want != nil {
		b.WriteString(" for " + r.Want.String())
	}
	if r.Err != nil {
		text := r.Err.Error() // this text may contain the value
		if len(text) > longestReason {
			text = strings.ToValidUTF8(text[:longestReason], "") + "…"
		}
		b.WriteString(": " + text)
	}
	return b.String()
}

// longestReason is the maximum number of bytes that Error quotes from a user's error.
const longestReason = 1 << 10

// Unwrap returns the error of the user's method.
func (r *Refusal) Unwrap() error { return r.Err }

// A problem is the reason why a decoder has stopped.
type problem struct {
	kind   ProblemKind
	at     int
	plan   *decodePlan  // plan of the value; for an invalid key, plan of the map
	member *memberNames // the missing member
	err    error        // error of the user's method, or nil
}

// refuse records a problem at i and returns -1, the position for a refused text. It is not inlined, so that the code for texts
// without problems remains small.
//
//go:noinline
func (d *decoder) refuse(kind ProblemKind, i int) int {
	d.problem.kind, d.problem.at = kind, i
	return -1
}

// unfit refuses the value at i if it does not fit the type of p, or the name at i if it does not fit the type of p's keys.
//
//go:noinline
func (d *decoder) unfit(kind ProblemKind, p *decodePlan, i int, err error) int {
	d.problem = problem{kind: kind, at: i, plan: p, err: err}
	return -1
}

// missing refuses the object at i, which does not have the member m.
func (d *decoder) missing(i int, m *memberNames) {
	d.problem = problem{kind: ProblemMissing, at: i, member: m}
}

// mismatch refuses the value at i, which does not fit the type of p.
func (d *decoder) mismatch(p *decodePlan, i int) int { return d.unfit(ProblemType, p, i, nil) }

// syntax refuses a text that is invalid from position i.
func (d *decoder) syntax(i int) int { return d.refuse(ProblemSyntax, i) }

// skip reads a value and checks only the grammar and the limits.
func (d *decoder) skip(i int) int {
	if i < len(d.data) {
		switch c := d.data[i]; c {
		case '{':
			return d.skipParts(i, '}')
		case '[':
			return d.skipParts(i, ']')
		}
	}
	next, ok := scanScalar(d.data, i)
	if !ok {
		return d.syntax(next)
	}
	if next-i > d.limits.MaxNumber && d.data[i] != '"' {
		return d.refuse(ProblemNumber, i)
	}
	return next
}

// skipParts reads an object or an array.
func (d *decoder) skipParts(start int, end byte) int {
	if d.depth--; d.depth < 0 {
		return d.refuse(ProblemDepth, start)
	}
	i, more := d.open(start, end)
	for more {
		if end == '}' {
			if i >= len(d.data) || d.data[i] != '"' {
				return d.syntax(i)
			}
			next, _, ok := scanString(d.data, i+1)
			if !ok {
				return d.syntax(next)
			}
			if i = skipSpace(d.data, next); i >= len(d.data) || d.data[i] != ':' {
				return d.syntax(i)
			}
			i = skipSpace(d.data, i+1)
		}
		if i = d.skip(i); i < 0 {
			return -1
		}
		if i, more = d.next(i, end); i < 0 {
			return -1
		}
	}
	if i >= 0 {
		d.depth++
	}
	return i
}

// check reads a complete text and checks only the grammar and the limits.
func (d *decoder) check() bool {
	next := d.skip(skipSpace(d.data, 0))
	if next < 0 {
		return false
	}
	if next = skipSpace(d.data, next); next < len(d.data) {
		d.syntax(next)
		return false
	}
	return true
}

// refusal describes the problem at which the decoder has stopped. It reads the text a second time without making a value, because
// invalid JSON is reported even if it follows another problem.
func (d *decoder) refusal() *Refusal {
	f := &d.problem
	if f.kind == problemNone {
		return &Refusal{Kind: ProblemMemory}
	}
	checker := decoder{data: d.data, limits: d.limits, depth: d.limits.MaxDepth, elements: d.limits.MaxElements}
	if !checker.check() {
		f = &checker.problem
		return &Refusal{Kind: f.kind, Offset: f.at, End: f.at}
	}
	checker.depth, checker.elements = d.limits.MaxDepth, d.limits.MaxElements
	r := &Refusal{Kind: f.kind, Offset: f.at, End: checker.skip(f.at), Err: f.err}
	member := ""
	if f.member != nil {
		member = f.member.name
	}
	r.Pointer = pathTo(d.data, f.at, member)
	switch f.kind {
	case ProblemType:
		r.Want, r.Quoted = f.plan.typ, f.plan.op == opQuoted
	case ProblemName:
		r.Want = f.plan.typ.Key()
	}
	return r
}

// A pointerStep is one step of a JSON pointer: the name of a member, or an index.
type pointerStep struct {
	object bool
	name   []byte // name in the text, without quotes; nil until the name has been read
	index  int
}

// maxPointer is the maximum length of a JSON pointer, in bytes.
const maxPointer = 1 << 10

// pathTo returns the JSON pointer (RFC 6901) of the value or name at an offset in a well-formed text. If member is not empty,
// pathTo appends the member to the pointer. A pointer that exceeds maxPointer is truncated and ends in "…".
func pathTo(data []byte, offset int, member string) string {
	var room [8]pointerStep
	steps := room[:0]
	for i := 0; i <= offset; {
		var top *pointerStep
		if len(steps) > 0 {
			top = &steps[len(steps)-1]
		}
		switch c := data[i]; {
		case c == '"':
			next, _, _ := scanString(data, i+1)
			if top != nil && top.object && top.name == nil {
				top.name = data[i+1 : next-1]
			}
			i = next
			continue
		case i == offset:
		case c == '{' || c == '[':
			steps = append(steps, pointerStep{object: c == '{'})
		case c == '}' || c == ']':
			steps = steps[:len(steps)-1]
		case c == ',':
			top.name = nil
			top.index++
		}
		i++
	}
	var text [96]byte
	b := text[:0]
	for _, s := range steps {
		if len(b) > maxPointer {
			break
		}
		if !s.object {
			b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
			continue
		}
		start := len(b) + 1
		b, _ = appendUnquoted(append(b, '/'), beginning(s.name))
		b = escapeToken(b, start)
	}
	if member != "" {
		start := len(b) + 1
		b = escapeToken(append(append(b, '/'), member...), start)
	}
	if len(b) > maxPointer {
		cut := maxPointer
		for !utf8.RuneStart(b[cut]) {
			cut--
		}
		b = append(b[:cut], "…"...)
	}
	return string(b)
}

// beginning returns a name of at most maxPointer bytes unchanged. Otherwise it returns a copy that ends in "…". The copy is cut
// before the first escape of the name, and after little more than maxPointer bytes.
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

// escapeToken escapes the last token of the pointer b. The token begins at start.
func escapeToken(b []byte, start int) []byte {
	if !bytes.ContainsAny(b[start:], "~/") {
		return b
	}
	return append(b[:start], strings.NewReplacer("~", "~0", "/", "~1").Replace(string(b[start:]))...)
}
