package router

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// overlaps finds values that two constrained segments both match. It caches results by the shapes of the segments, which are far fewer
// than the routes.
//
// The search runs the automata of both segments in parallel, and tests the values that both automata accept against the segments, in
// the order of length. If no pair of states accepts a value, no common value exists. A constraint that is a function, or that is too
// large for an automaton, counts as accepting any value during the search. Then only the tested values decide, and an overlap may
// remain undetected. Which of the two routes a lookup then tries first depends on the order of their shapes, not on the order of
// registration.
type overlaps struct {
	automata map[string]*automaton
	examples map[[2]string]string // a common value of two shapes, "" if none was found
}

const (
	maxTries  = 2000  // maximum number of values that are tested for two shapes
	maxPairs  = 20000 // maximum number of steps of the search; after these, the segments count as having no common value
	perPair   = 8     // maximum number of values that are kept for one pair of states
	perLetter = 2     // number of bytes that are tested for each class of bytes that both automata treat alike
)

// find returns a value, in canonical form, that both segments match. ok is false if none was found.
func (o *overlaps) find(a, b *segment) (example string, ok bool) {
	key := [2]string{a.shape, b.shape}
	example, ok = o.examples[key]
	if !ok {
		example = o.search(a, b)
		if o.examples == nil {
			o.examples = make(map[[2]string]string)
		}
		o.examples[key] = example
	}
	return example, example != ""
}

// probes are values that are tested in addition if one of the segments is opaque.
var probes = []string{
	"a", "1", "x1", "A", "abc", "123", "a-b", "a.b", "true", "2024-01-31", "127.0.0.1", "::1", "en",
	"123e4567-e89b-12d3-a456-426614174000", "é", "a b", "user@example.com", "v1", "0", "-1", "abc_def",
}

func (o *overlaps) search(a, b *segment) string {
	var s state
	both := func(value string) bool {
		canonical, _ := canonicalValue(value)
		return a.match(canonical, 0, len(canonical), 0, &s) && b.match(canonical, 0, len(canonical), 0, &s)
	}
	found := ""
	walkProduct(o.automaton(a), o.automaton(b), func(value string) bool {
		if both(value) {
			found = value
		}
		return found == ""
	})
	if found == "" && (a.opaque() || b.opaque()) {
		for _, value := range probes {
			if both(value) {
				found = value
				break
			}
		}
	}
	canonical, _ := canonicalValue(found)
	return canonical
}

// opaque reports whether the segment has a constraint that is a function or is matched by package regexp.
func (seg *segment) opaque() bool {
	for _, p := range seg.parts {
		if p.constraint != nil && (p.constraint.custom != nil || p.constraint.regexp != nil) {
			return true
		}
	}
	return false
}

// automaton returns an automaton that accepts every value of the segment, and perhaps other values.
func (o *overlaps) automaton(seg *segment) *automaton {
	if a := o.automata[seg.shape]; a != nil {
		return a
	}
	const anything = `(?s:.+)`
	var a *automaton
	if len(seg.parts) == 1 && seg.parts[0].constraint != nil && seg.parts[0].constraint.automaton != nil {
		a = seg.parts[0].constraint.automaton
	} else {
		expr := ""
		for _, p := range seg.parts {
			switch {
			case p.name == "":
				expr += regexp.QuoteMeta(Unescape(p.literal))
			case p.constraint == nil || p.constraint.superset == "":
				expr += anything
			default:
				expr += "(?:" + p.constraint.superset + ")"
			}
		}
		if a = compileAutomaton(expr); a == nil {
			a = compileAutomaton(anything)
		}
	}
	if o.automata == nil {
		o.automata = make(map[string]*automaton)
	}
	o.automata[seg.shape] = a
	return a
}

// supersetOf returns an expression that can be a part of a larger expression and matches at least the strings of expr. It is expr
// itself, unless expr has assertions, because their result depends on the surrounding text.
func supersetOf(expr string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || hasAssertion(re) {
		return ""
	}
	return expr
}

func hasAssertion(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if hasAssertion(sub) {
			return true
		}
	}
	return false
}

// A pair is a state of each of two automata, and a value that leads to these states.
type pair struct {
	a, b  uint16
	value string
}

// walkProduct calls visit for values that both automata accept, in the order of length, until visit returns false. It visits several
// values for each pair of states, because the segments may refuse some of them, but it does not visit all values.
func walkProduct(a, b *automaton, visit func(value string) bool) {
	visits := map[[2]uint16]int{{a.start, b.start}: 1}
	queue := []pair{{a: a.start, b: b.start}}
	letters := a.letters(b)
	for tries, steps := 0, 0; len(queue) > 0 && tries < maxTries && steps < maxPairs; steps++ {
		p := queue[0]
		queue = queue[1:]
		if p.value != "" && a.next[p.a] != 0 && b.next[p.b] != 0 {
			tries++
			if !visit(p.value) {
				return
			}
		}
		for _, c := range letters {
			next := pair{a: a.next[p.a+uint16(a.class[c])], b: b.next[p.b+uint16(b.class[c])], value: p.value + string([]byte{c})}
			key := [2]uint16{next.a, next.b}
			if next.a == 0 || next.b == 0 || visits[key] == perPair {
				continue
			}
			visits[key]++
			queue = append(queue, next)
		}
	}
}

// letters returns one or two bytes for each class of bytes that a and b distinguish. It prefers readable bytes.
func (a *automaton) letters(b *automaton) []byte {
	const readable = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-._~"
	seen := make(map[[2]uint8]int)
	var letters []byte
	add := func(c byte) {
		key := [2]uint8{a.class[c], b.class[c]}
		if seen[key]++; seen[key] <= perLetter {
			letters = append(letters, c)
		}
	}
	for i := range len(readable) {
		add(readable[i])
	}
	for c := range 256 {
		if strings.IndexByte(readable, byte(c)) < 0 {
			add(byte(c))
		}
	}
	return letters
}
