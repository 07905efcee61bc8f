package jsonwire

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// A Refusal is the error of a text that a Decoder refuses. If the text is no JSON,
// or goes beyond a limit, that is the only problem; else each value that does not
// fit its type, each broken rule and each member that is missing or too much is
// listed, as far as Limits.MaxProblems allows.
type Refusal struct {
	Problems []Problem // in the order of their offsets
	More     bool      // there are more than these; of one problem that is not looked at
}

// A Problem is one thing that is wrong with a text. It does not hold the value.
type Problem struct {
	Kind    ProblemKind
	Pointer string // RFC 6901; "" for the whole text, and for invalid JSON
	// Offset and End delimit the value, in bytes from 0. For unknown and repeated members they delimit the name; for a
	// missing one the object. For invalid JSON Offset is the first invalid byte, len(data) if the text ends too early.
	Offset, End int
	Want        reflect.Type // of ProblemType and ProblemName: what does not take the value
	Quoted      bool         // of ProblemType: the field has the option «string»
	Rule        any          // of ProblemRule and ProblemMissing: as the Ruler gave it
	Err         error        // of ProblemType: the error of the user's method, or nil
}

// ProblemKind is the kind of a fault in a text.
type ProblemKind uint8

const (
	ProblemSyntax    ProblemKind = iota // no JSON
	ProblemDepth                        // nested deeper than Limits.MaxDepth
	ProblemElements                     // more than Limits.MaxElements
	ProblemNumber                       // a number longer than Limits.MaxNumber
	ProblemType                         // the value is none of its type
	ProblemName                         // the name is no key of its map
	ProblemUnknown                      // a member that the struct does not have
	ProblemDuplicate                    // a member that was there before
	ProblemUTF8                         // a string with invalid UTF-8 or half a surrogate pair
	ProblemMissing                      // a member that must be there
	ProblemRule                         // a rule is broken
	ProblemUnstable                     // refused because of the existing value or a method of the user
)

var problemNames = [...]string{
	"invalid JSON", "too deep", "too many elements", "number too long", "unfit value", "unfit name", "unknown member",
	"member twice", "invalid UTF-8", "missing member", "rule broken", "refused",
}

func (k ProblemKind) String() string { return problemNames[k] }

func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString("decode JSON: ")
	for i, p := range r.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s at offset %d", p.Kind, p.Offset)
		if p.Pointer != "" {
			b.WriteString(" (" + p.Pointer + ")")
		}
		if p.Rule != nil {
			fmt.Fprintf(&b, ": %v", p.Rule)
		}
		if p.Want != nil {
			b.WriteString(" for " + p.Want.String())
		}
		if p.Err != nil {
			text := p.Err.Error() // which may hold the value
			if len(text) > longestReason {
				text = strings.ToValidUTF8(text[:longestReason], "") + "…"
			}
			b.WriteString(": " + text)
		}
	}
	if r.More {
		b.WriteString("; and more")
	}
	return b.String()
}

// longestReason bounds what Error repeats of an error of the user's, in bytes.
const longestReason = 1 << 10

// Unwrap returns the error of the user's method.
func (r *Refusal) Unwrap() []error {
	var list []error
	for _, p := range r.Problems {
		if p.Err != nil {
			list = append(list, p.Err)
		}
	}
	return list
}

// problem is a Problem where it is found.
type problem struct {
	kind     ProblemKind
	at, end  int
	want     *decodePlan
	wantType reflect.Type // if want is nil
	rule     any
	name     string // of a missing member
	below    string // JSON pointer from the value on
	err      error
}

// collector gathers problems in the second reading of a text. It has room for the problems of most refusals, so that
// one costs few allocations.
type collector struct {
	found []problem
	most  int
	full  bool // there were more

	refusal  Refusal
	locator  locator
	someOf   [4]problem
	problems [4]Problem
	steps    [8]pointerStep
	text     [96]byte
}

func (c *collector) add(p problem) {
	if c.full = len(c.found) >= c.most; !c.full {
		c.found = append(c.found, p)
		c.full = c.most == 1 // the caller wants to know one, not whether there are more
	}
}

// refuse notes a problem that spoils its value.
func (d *decoder) refuse(p problem) int {
	if d.all != nil {
		d.all.add(p)
	}
	return -1
}

// mismatch refuses the value at i, which is none of p's type.
func (d *decoder) mismatch(p *decodePlan, i int) int {
	if d.all != nil {
		d.all.add(problem{kind: ProblemType, at: i, end: d.skip(i), want: p})
	}
	return -1
}

// tolerate notes a problem that does not spoil its value, and reports whether to
// go on.
func (d *decoder) tolerate(p problem) bool {
	if d.all == nil {
		return false
	}
	d.all.add(p)
	return !d.all.full
}

// resume goes on behind the value at i, which was refused, if the text is read to
// find every problem.
func (d *decoder) resume(i int) int {
	if d.all == nil || d.all.full {
		return -1
	}
	return d.skip(i)
}

// syntax refuses a text that is no JSON from i on.
func (d *decoder) syntax(i int) int { return d.beyond(ProblemSyntax, i) }

// beyond refuses a text that is no JSON, or goes beyond a limit, from i on.
func (d *decoder) beyond(kind ProblemKind, i int) int {
	d.why, d.at = kind, i
	return -1
}

// skip reads a value of which only the grammar counts.
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
		return d.beyond(ProblemNumber, i)
	}
	return next
}

// skipParts reads an object or an array.
func (d *decoder) skipParts(start int, end byte) int {
	if d.depth--; d.depth < 0 {
		return d.beyond(ProblemDepth, start)
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

// check reads a whole text of which only the grammar and the limits count.
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

// Explain says why data was refused, by Try say. It decodes it again.
func (d *Decoder) Explain(data []byte, l Limits) *Refusal {
	l = l.Filled()
	checker := decoder{data: data, limits: l, depth: l.MaxDepth, elements: l.MaxElements}
	if !checker.check() {
		return &Refusal{Problems: []Problem{{Kind: checker.why, Offset: checker.at, End: checker.at}}}
	}
	all := &collector{most: l.MaxProblems}
	all.found = all.someOf[:0]
	l.MaxElements, l.MaxNumber = math.MaxInt, math.MaxInt // have been looked at
	run := decoder{data: data, limits: l, depth: math.MaxInt, elements: math.MaxInt, all: all}
	run.text(d.plan, memoryOf(reflect.New(d.typ)))
	if len(all.found) == 0 {
		return &Refusal{Problems: []Problem{{Kind: ProblemUnstable}}}
	}
	return all.refuse(data)
}

// refuse returns the refusal of data with the problems found.
func (c *collector) refuse(data []byte) *Refusal {
	slices.SortStableFunc(c.found, func(a, b problem) int { return a.at - b.at })
	r := &c.refusal
	r.Problems, r.More = c.problems[:0], c.full && c.most > 1
	for i := range c.found {
		f := &c.found[i]
		p := Problem{Kind: f.kind, Offset: f.at, End: f.end, Want: f.wantType, Rule: f.rule, Err: f.err}
		if f.want != nil {
			p.Want, p.Quoted = f.want.typ, f.want.op == opQuoted
		}
		r.Problems = append(r.Problems, p)
	}
	c.locator = locator{data: data, found: c.found, out: r.Problems, steps: c.steps[:0], text: c.text[:0]}
	c.locator.value(skipSpace(data, 0))
	c.locator = locator{} // lets go of data
	return r
}
