package router

import (
	"regexp"
	"regexp/syntax"
	"testing"
)

// expressions are the inputs of the differential tests. The last ones exceed the limits.
var expressions = []string{
	`^\w+$`, `\d{4}-\d{2}`, `a|b|cd`, `[^/]+`, `.*`, `.+`, ``, `a*b+c?`, `(?i)straße`, `(?i)k+`,
	`\bfoo\b`, `foo\B.`, `(?m)^a$\n^b$`, `(?s).{2,3}`, `[α-ω]+`, `日本?`, `[^a]`, `\x{FFFD}+`,
	`(?:a|ab)(?:c|bcd)(?:d*)`, `^(a|b)*$`, `x*?y`, `[[:alpha:]]+[[:digit:]]*`, `\D`, `[\x{10000}-\x{10FFFF}]`,
	`é|è`, `a{0,5}b`, `$a`, `a^`, `(^a|b$)+`, `[a-z0-9]+(-[a-z0-9]+)*`, `\pL+`, `[a-z]{1,300}`, `\PN{20}`,
}

func TestAutomatonLikeRegexp(t *testing.T) {
	values := []string{
		"", "a", "b", "ab", "abc", "foo", "foo bar", "foob", "a\nb", "a\n", "\n", "straße", "STRASSE", "STRAßE",
		"K", "k", "\u212a", "2024-01", "αβγ", "日本", "日", "é", "\xff", "\xe2\x82", "\xe2\x82\xac", "\xe2\x82a", "\xf0\x90\x80",
		"\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\x80", "\ufffd", "a/b", "%", "100%", "a\x00", "abcd", "word_1", "aaab", "xxy",
		"\xf4\x90\x80\x80", "\xe0\x80\x80", "\xe2\xe2\x82\xac", "слово", "x\u0301",
	}
	for _, expr := range expressions {
		a := compileAutomaton(expr)
		if a == nil {
			continue
		}
		re := regexp.MustCompile(wholeValue(expr))
		for _, value := range values {
			canonical, _ := canonicalValue(value)
			if got, want := a.match(canonical), re.MatchString(value); got != want {
				t.Errorf("%q on %q: got %v, package regexp returns %v", expr, value, got, want)
			}
		}
	}
}

// TestAutomatonFits lists expressions that must not need the fallback, and an expression that is too large.
func TestAutomatonFits(t *testing.T) {
	for _, expr := range []string{`^\w+$`, `[a-z]{1,300}`, `(?i)straße`, `[^/]+`, `\bfoo\b`, `[α-ω]+`, `\d{4}-\d{2}-\d{2}T\d{2}:\d{2}`} {
		a := compileAutomaton(expr)
		if a == nil {
			t.Errorf("%q: got no automaton", expr)
			continue
		}
		t.Logf("%q: %d table entries", expr, len(a.next))
	}
	if compileAutomaton(`(a|b)*a(a|b){14}`) != nil {
		t.Error("got an automaton of 2^15 states, want none")
	}
}

func FuzzAutomaton(f *testing.F) {
	for _, expr := range expressions {
		f.Add(expr, "foo\xe2\x82-\n1")
	}
	f.Fuzz(func(t *testing.T, expr, value string) {
		if len(expr) > 60 {
			return
		}
		if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
			return
		}
		a := compileAutomaton(expr)
		if a == nil {
			return
		}
		canonical, _ := canonicalValue(value)
		if got, want := a.match(canonical), regexp.MustCompile(wholeValue(expr)).MatchString(value); got != want {
			t.Errorf("%q on %q: got %v, package regexp returns %v", expr, value, got, want)
		}
	})
}
