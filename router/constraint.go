package router

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// constraint limits the values of a parameter. Exactly one of kind, automaton, regexp and custom is set.
type constraint struct {
	text string    // as written in the pattern
	kind valueKind // kind of a built-in constraint
	// An expression is matched by the field automaton, or by the field regexp if its automaton would be too large.
	automaton *automaton
	regexp    *regexp.Regexp
	custom    func(string) bool
	// superset is an expression that matches all accepted values, and perhaps other values. The detection of conflicts uses it. It is
	// empty if no such expression is known.
	superset string
}

// match reports whether a value satisfies the constraint. value is canonical text, and the constraint applies to the unescaped value.
// The memory of s is used for values that must be unescaped.
func (c *constraint) match(value string, s *state) bool {
	switch {
	case c.kind != anyValue:
		// value need not be unescaped: no built-in constraint accepts a slash or a percent sign, which escapes represent, and none
		// accepts the percent sign that begins an escape.
		return c.kind.matches(value)
	case c.automaton != nil:
		return c.automaton.match(value)
	}
	if strings.IndexByte(value, '%') >= 0 {
		m := s.memory()
		m.value = AppendValue(m.value[:0], value)
		value = view(m.value)
	}
	if c.regexp != nil {
		return c.regexp.MatchString(value)
	}
	return c.custom(value)
}

// constraints finds the constraint for the text after the colon of a parameter.
type constraints struct {
	named map[string]*constraint
	cache map[string]*constraint // compiled inline regular expressions
}

// resolve finds a named constraint or compiles a regular expression. Text in the form of a name is always a name. Otherwise a
// misspelled name would be an expression that matches only itself.
func (cs *constraints) resolve(text string) (*constraint, error) {
	if c := cs.named[text]; c != nil {
		return c, nil
	}
	if c := builtins[text]; c != nil {
		return c, nil
	}
	if text == "" {
		return nil, fmt.Errorf("empty constraint")
	}
	if isName(text) {
		return nil, fmt.Errorf("unknown constraint %q (a regular expression for only this word is ^%s$)", text, text)
	}
	if c := cs.cache[text]; c != nil {
		return c, nil
	}
	c, err := compileConstraint(text, text)
	if err != nil {
		return nil, err
	}
	if cs.cache == nil {
		cs.cache = make(map[string]*constraint)
	}
	cs.cache[text] = c
	return c, nil
}

// define registers a named constraint.
func (cs *constraints) define(name string, c *constraint) error {
	switch {
	case !isName(name):
		return fmt.Errorf("%q is not a constraint name (a letter or _, then letters, digits, _ or -)", name)
	case builtins[name] != nil:
		return fmt.Errorf("constraint %q is built in", name)
	case cs.named[name] != nil:
		return fmt.Errorf("constraint %q is defined already", name)
	}
	if cs.named == nil {
		cs.named = make(map[string]*constraint)
	}
	cs.named[name] = c
	return nil
}

// compileConstraint compiles an expression. The expression must match the whole value.
func compileConstraint(text, expr string) (*constraint, error) {
	if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		return nil, err
	}
	c := &constraint{text: text, superset: supersetOf(expr)}
	if c.automaton = compileAutomaton(expr); c.automaton == nil {
		c.regexp = regexp.MustCompile(wholeValue(expr))
	}
	return c, nil
}

// wholeValue anchors an expression at both ends.
func wholeValue(expr string) string { return "^(?:" + expr + ")$" }
