package router

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// overlaps finds values that two constrained segments both match. Results are cached by the shapes of the
// segments, which are far fewer than routes.
//
// The search runs the automata of both segments in parallel and tests the values that both accept against the segments themselves,
// shortest first. If no pair of states accepts, there is no common value. A constraint that is a function, or too large for an
// automaton, accepts any value in the search. Then only the tested values decide, so an overlap may remain undetected. In this case the
// order of the shapes decides between the routes, not the order of registration.
type overlaps struct {
	automata map[string]*automaton
	examples map[[2]string]string // "" for none
}

const (
	maxTries  = 2000  // maximum number of values tested for one pair of shapes
	maxPairs  = 20000 // maximum number of steps of the search; after that there is assumed to be no overlap
	perPair   = 8     // maximum number of values stored for one pair of states
	perLetter = 2     // number of bytes tested for each class of bytes that both automata treat alike
)

// find returns a value, in canonical form, that both segments match.
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

// probes are values that are tested if a constraint has no automaton.
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

// opaque reports whether the segment has a constraint without an expression, such as a function.
func (seg *segment) opaque() bool {
	for _, p := range seg.parts {
		if p.constraint != nil && (p.constraint.custom != nil || p.constraint.regexp != nil) {
			return true
		}
	}
	return false
}

// automaton returns an automaton that accepts every value of the segment, and perhaps others.
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

// supersetOf returns an expression, for use within a larger one, that matches at least the strings of expr: expr
// itself, unless it has assertions, whose result depends on the surrounding text.
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

// A pair is a state of each automaton.
type pair struct {
	a, b  uint16
	value string
}

// walkProduct visits values that both automata accept, shorter ones first, until visit returns false. It visits several values for a
// pair of states, since the segments may refuse some of them, but not all existing values.
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

// letters returns, for each class of bytes that a and b distinguish, one or two of the most readable bytes.
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
