package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Limits that apply to every JSON text.
const (
	MaxDepth  = 1000 // maximum nesting of arrays and objects
	MaxNumber = 1000 // maximum length of a number, in bytes
)

// A checker parses one JSON text by recursive descent and checks it against a node. Unlike encoding/json it continues after
// a violation and reports all violations. Only malformed JSON ends the check.
//
// Invariant: body[:pos] is the beginning of a well-formed text.
type checker struct {
	body    []byte
	pos     int
	path    []step // steps to the current value
	report  *Report
	in      string // source of the text, see Violation.In
	scratch []byte // decoded content of the last string that had escapes
	bare    bool   // violations are not recorded, because the caller only needs to know whether there are any
	discard Report // report of a bare check
	output  bool   // the text is the JSON of an answer, for which other members are required
	left    int    // number of members and elements that are still permitted; negative for no limit
	read    int    // number of members and elements that were read
	broken  bool   // there was a violation
	sums    hasher
	inside  bool // the current value is part of a value whose type has a description and decodes itself

	// A decoder does not accept every text that a schema accepts. The parts that it does not accept are rewritten in a
	// second pass, after the first pass has found no violation.
	unplain bool   // a part must be rewritten
	writing bool   // this is the second pass
	plain   []byte // body[:from], rewritten for a decoder
	from    int

	steps [32]step // initial memory of path
}

// A step is one step of a JSON pointer: the name of a member, or an index.
type step struct {
	name  []byte // name as in the body, with its escapes
	index int
	array bool
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

// Check checks body against the node and adds violations to report. The argument in is the source of the body, see
// Violation.In. If Check finds no violations, it returns the JSON to decode: either body itself or a copy that contains the
// defaults of absent members, and has integers without fraction and exponent and times with T and Z in upper case.
func (n *Node) Check(body []byte, in string, report *Report) []byte {
	return n.check(body, in, report, false)
}

// CheckOutput checks the JSON of an answer. In an answer, the members that are always written are required.
func (n *Node) CheckOutput(body []byte, report *Report) { n.check(body, "body", report, true) }

func (n *Node) check(body []byte, in string, report *Report, output bool) []byte {
	c := checkers.Get().(*checker)
	defer c.release()
	c.output, c.report, c.in = output, report, in
	c.whole(n, body)
	if c.broken || !c.unplain {
		return body
	}
	c.writing = true
	if c.whole(n, body); !c.copies(len(body), 0) {
		return body
	}
	return append(c.plain, body[c.from:]...)
}

// whole checks the complete text body.
func (c *checker) whole(n *Node, body []byte) {
	c.body, c.pos, c.path, c.read, c.left = body, 0, c.steps[:0], 0, -1
	if c.report.MaxElements > 0 {
		c.left = c.report.MaxElements
	}
	if c.value(n) {
		if c.pos = skipSpace(body, c.pos); c.pos < len(body) {
			c.syntax()
		}
	}
}

// longestScratch is the maximum size of the buffer of a pooled checker, in bytes.
const longestScratch = 16 << 10

// release returns the checker to the pool, after it has removed all references to the text.
func (c *checker) release() {
	scratch := c.scratch
	if cap(scratch) > longestScratch {
		scratch = nil
	}
	discard := c.discard
	*c = checker{scratch: scratch, discard: discard}
	checkers.Put(c)
}

// rewrites records that a decoder does not accept the text unchanged. It returns true in the second pass; the caller must
// then call write with the replacement.
func (c *checker) rewrites() bool {
	c.unplain = true
	return c.writing
}

// copies makes room in c.plain for c.body[c.from:until] and for more bytes, whose number is added. If the Room of the
// report has no memory, copies ends the check and returns false.
func (c *checker) copies(until, added int) bool {
	need := len(c.plain) + until - c.from + added
	if need <= cap(c.plain) || c.report.Ended {
		return !c.report.Ended
	}
	size := max(need, len(c.body)+64, 2*cap(c.plain))
	if more := size - cap(c.plain); size > smallCopy && c.report.Room != nil && c.report.Room.ReserveMemory(int64(more)) != nil {
		c.report.Ended = true
		return false
	}
	c.plain = append(make([]byte, 0, size), c.plain...)
	return true
}

// smallCopy is the maximum size in bytes of a rewritten text for which no memory is reserved.
const smallCopy = 64 << 10

// write replaces c.body[at:until] by text in c.plain, the copy for decoders.
func (c *checker) write(at, until int, text ...string) {
	added := 0
	for _, piece := range text {
		added += len(piece)
	}
	if !c.copies(at, added) {
		return
	}
	c.plain = append(c.plain, c.body[c.from:at]...)
	for _, piece := range text {
		c.plain = append(c.plain, piece...)
	}
	c.from = until
}

// value checks one value. It returns false if the check must end.
func (c *checker) value(n *Node) bool {
	c.pos = skipSpace(c.body, c.pos)
	if c.pos >= len(c.body) {
		return c.syntax()
	}
	start := c.pos
	if n != nil && n.As != nil && !(n.Nullable && c.body[start] == 'n') {
		return c.described(n)
	}
	switch ch := c.body[start]; {
	case ch == '{' || ch == '[':
		if len(c.path) >= MaxDepth {
			c.violate("depth", strconv.Itoa(MaxDepth))
			return false
		}
		if !c.container(n, ch) {
			return false
		}
	case ch == '"':
		if !c.string(n) {
			return false
		}
	case ch == '-' || isDigit(ch):
		end, ok := scanNumber(c.body, start)
		if c.pos = end; !ok {
			return c.syntax()
		}
		if end-start > MaxNumber && !c.output {
			c.violate("numberLength", strconv.Itoa(MaxNumber))
			return true
		}
		c.number(n, c.body[start:end])
	default:
		word := "null"
		if ch == 't' {
			word = "true"
		} else if ch == 'f' {
			word = "false"
		}
		end, ok := scanWord(c.body, start, word)
		if c.pos = end; !ok {
			return c.syntax()
		}
		c.word(n, word)
	}
	if n != nil && n.Kind == Custom && n.decodes != nil && !(n.Nullable && c.body[start] == 'n') {
		if n.decodes(c.body[start:c.pos]) != nil {
			c.violate("type", n.typeName())
		}
	}
	return true
}

// word checks one of the words null, true and false.
func (c *checker) word(n *Node, word string) {
	if n == nil {
		return
	}
	isNull := word == "null"
	if isNull && n.Nullable {
		return
	}
	switch n.Kind {
	case Any, Custom:
	case Bool:
		if isNull {
			c.violate("type", "boolean")
			return
		}
	default:
		c.violate("type", n.wanted())
		return
	}
	c.enum(n, []byte(word))
}

// container checks an array or an object.
func (c *checker) container(n *Node, ch byte) bool {
	start := c.pos
	var ok bool
	switch {
	case n == nil || n.Kind == Any || n.Kind == Custom:
		object, array := anyMap, anyArray
		if n != nil && n.Kind == Any && n.Type != nil {
			object, array = looseMap, looseArray
		}
		if ch == '{' {
			ok = c.object(object)
		} else {
			ok = c.array(array)
		}
	case ch == '{' && (n.Kind == Object || n.Kind == Map):
		ok = c.object(n)
	case ch == '[' && n.Kind == Array:
		ok = c.array(n)
	default:
		c.violate("type", n.wanted())
		if ch == '{' {
			return c.object(anyMap)
		}
		return c.array(anyArray)
	}
	if ok && n != nil && n.Rules.enum != nil {
		c.sums.body = c.body
		all, end := c.sums.value(start)
		if c.sums.remember(start, all, end); !n.Rules.values[all] {
			c.violate("enum", n.Rules.enumText)
		}
	}
	return ok
}

// The following nodes are for values without a schema. The loose nodes are for values that are stored in a Go interface.
// Their numbers must fit a float64.
var (
	anyMap     = &Node{Kind: Any}
	anyArray   = &Node{Kind: Array}
	loose      = &Node{Kind: Any, Type: reflect.TypeFor[any](), Nullable: true}
	looseMap   = &Node{Kind: Any, Elem: loose}
	looseArray = &Node{Kind: Array, Elem: loose}
)

// another counts a member or an element. It returns false if the check must end, because the text has too many members and
// elements, the report is full, or the context of the request has ended.
func (c *checker) another() bool {
	if c.left == 0 {
		c.violate("elements", strconv.Itoa(c.report.MaxElements))
		return false
	}
	c.left--
	if c.read++; c.read%elementsBetweenChecks == 0 && c.report.HasEnded() {
		c.broken = true
		return false
	}
	return !c.report.More && !c.report.Ended
}

// elementsBetweenChecks is the number of members and elements after which the context of the request is checked.
const elementsBetweenChecks = 1 << 10

func (c *checker) array(n *Node) bool {
	c.path = append(c.path, step{array: true})
	depth, count := len(c.path), 0
	start := c.pos
	for c.pos++; ; c.pos++ {
		if c.pos = skipSpace(c.body, c.pos); count == 0 && c.peek() == ']' {
			break
		}
		c.path[depth-1].index = count
		if !c.another() || !c.value(n.Elem) {
			return false
		}
		count++
		if c.pos = skipSpace(c.body, c.pos); c.peek() == ']' {
			break
		}
		if c.peek() != ',' {
			return c.syntaxIn(depth)
		}
	}
	c.pos++
	c.path = c.path[:depth-1]
	r := &n.Rules
	if r.MinItems.Set && count < r.MinItems.N {
		c.violate("minItems", strconv.Itoa(r.MinItems.N))
	}
	if r.MaxItems.Set && count > r.MaxItems.N {
		c.violate("maxItems", strconv.Itoa(r.MaxItems.N))
	}
	if r.UniqueItems && count > 1 {
		c.sums.body = c.body
		if i, ok := c.sums.firstRepeated(start); ok {
			c.violate("uniqueItems", strconv.Itoa(i))
		}
	}
	return true
}

// object checks an object: a struct, a map, or an object without a schema.
func (c *checker) object(n *Node) bool {
	var room [4]uint64
	seen := bits(room[:])
	var names nameSet
	s := n.Struct
	if s != nil && len(s.Members) > 64*len(room) {
		seen = newBits(len(s.Members))
	}
	c.path = append(c.path, step{})
	depth, count := len(c.path), 0
	for c.pos++; ; c.pos++ {
		if c.pos = skipSpace(c.body, c.pos); count == 0 && c.peek() == '}' {
			break
		}
		start := c.pos
		if c.peek() != '"' {
			return c.syntaxIn(depth)
		}
		end, flags, ok := scanString(c.body, start)
		if c.pos = end; !ok {
			return c.syntaxIn(depth)
		}
		name := c.body[start+1 : end-1]
		c.path[depth-1].name = name
		if flags&(notUTF8|surrogate) != 0 {
			c.violate("utf8", "")
		}
		if flags&escaped != 0 && (n.Kind == Map || s != nil && len(name) <= s.longest) { // a longer name is unknown, so it is not decoded
			c.scratch = appendUnescaped(c.scratch[:0], name)
			if name = c.scratch; n.Kind == Map {
				name = bytes.Clone(name) // because the set names retains the name
			}
		}
		if n.Kind == Map && !names.add(name, c.body, start+1, flags&escaped != 0) {
			c.violate("duplicate", "")
		}
		element := c.member(n, name, seen)
		if c.pos = skipSpace(c.body, c.pos); c.peek() != ':' {
			return c.syntax()
		}
		c.pos++
		if !c.another() || !c.value(element) {
			return false
		}
		count++
		if c.pos = skipSpace(c.body, c.pos); c.peek() == '}' {
			break
		}
		if c.peek() != ',' {
			return c.syntaxIn(depth)
		}
	}
	if s != nil {
		c.absent(s, seen, depth, count)
	}
	c.pos++
	c.path = c.path[:depth-1]
	r := &n.Rules
	if r.MinProperties.Set && count < r.MinProperties.N {
		c.violate("minProperties", strconv.Itoa(r.MinProperties.N))
	}
	if r.MaxProperties.Set && count > r.MaxProperties.N {
		c.violate("maxProperties", strconv.Itoa(r.MaxProperties.N))
	}
	return true
}

// member returns the node of the member of n with the given name, or nil if the member may have any value. It reports
// violations by the name, and adds the member to seen.
func (c *checker) member(n *Node, name []byte, seen bits) *Node {
	switch n.Kind {
	case Object:
		i := n.Struct.find(name)
		if i < 0 {
			if !n.Struct.Ignores(c.report.IgnoreUnknown) {
				c.violate("additionalProperties", "")
			}
			return nil
		}
		if seen.has(i) {
			c.violate("duplicate", "")
		}
		seen.set(i)
		switch m := &n.Struct.Members[i]; {
		case c.output && m.Node.Meta.WriteOnly:
			c.violate("writeOnly", "")
		case !c.output && m.Node.Meta.ReadOnly:
			if !c.report.IgnoreReadOnly {
				c.violate("readOnly", "")
			}
			return nil
		default:
			return m.Node
		}
		return nil
	case Map:
		if n.Names != nil {
			c.text(n.Names, name)
		}
	}
	return n.Elem
}

// absent reports required members that are missing, and adds the defaults of optional members that are missing. c.pos must
// be at the end of the object, depth is the length of c.path for its members, and count is their number.
func (c *checker) absent(s *Struct, seen bits, depth, count int) {
	for i := range s.Members {
		m := &s.Members[i]
		if c.report.More {
			return
		}
		if seen.has(i) {
			for _, other := range m.Dependent {
				if !seen.has(s.index[other]) {
					c.path[depth-1].name = s.Member(other).quoted
					c.violate("dependentRequired", m.Name)
				}
			}
			continue
		}
		if m.Required && !c.output || m.Always && c.output {
			c.path[depth-1].name = m.quoted
			c.violate("required", "")
		}
		if m.Default != nil && !c.output && !(m.Node.Meta.ReadOnly && c.report.IgnoreReadOnly) && c.rewrites() {
			comma := ","
			if count == 0 {
				comma = ""
			}
			count++
			c.write(c.pos, c.pos, comma, m.byAbsent)
		}
	}
}

func (c *checker) peek() byte {
	if c.pos < len(c.body) {
		return c.body[c.pos]
	}
	return 0
}

// violate reports a violation by the value to which c.path leads.
func (c *checker) violate(rule, limit string) {
	c.broken = true
	if c.bare || c.report.Full() {
		c.report.More = true
		return
	}
	c.report.Add(Violation{In: c.in, Pointer: c.pointer(), Rule: rule, Limit: limit})
}

// syntax reports that the JSON is malformed at c.pos, and ends the check.
func (c *checker) syntax() bool {
	if c.broken = true; c.bare || c.report.Full() {
		c.report.More = true
		return false
	}
	what := "the text ends within a value"
	if c.pos < len(c.body) {
		what = "unexpected byte " + byteName(c.body[c.pos])
	}
	at := strconv.Itoa(c.pos)
	if before := c.body[:c.pos]; bytes.IndexByte(before, '\n') >= 0 { // on the first line the offset determines the column
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		at += " (line " + strconv.Itoa(bytes.Count(before, []byte{'\n'})+1) + ", column " + strconv.Itoa(column) + ")"
	}
	c.report.Add(Violation{In: c.in, Pointer: c.pointer(), Rule: "syntax", Message: "invalid JSON at offset " + at + ": " + what})
	return false
}

// syntaxIn does the work of the method syntax for an error after a member or an element of a container. It reports the
// pointer of the container. If the invalid byte seems to belong to the previous value, as in 01, syntaxIn reports the
// pointer of that value. depth is the depth of the members or elements.
func (c *checker) syntaxIn(depth int) bool {
	if c.pos >= len(c.body) || !inWord(c.body[c.pos]) || !inWord(c.body[c.pos-1]) {
		c.path = c.path[:depth-1]
	}
	return c.syntax()
}

// inWord reports whether a byte can be part of a number or of a word such as true, even if the word is misspelled.
func inWord(b byte) bool {
	return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'z' || b == '.' || b == '_' || b == '-' || b == '+'
}

// byteName formats a byte for messages: 'x', or 0xEF for a byte that is not ASCII.
func byteName(b byte) string {
	if b < 0x80 {
		return strconv.QuoteRune(rune(b))
	}
	return fmt.Sprintf("%#02X", b)
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
