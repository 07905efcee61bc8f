package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// compilePattern compiles a regular expression that has the same meaning in package regexp and in ECMA-262, to which JSON
// Schema refers. It refuses syntax that only one of them supports or that they interpret differently. With such syntax,
// clients that check the rule would check another rule than the server.
func compilePattern(text string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(text)
	if err == nil {
		err = sameInECMA(text)
	}
	if err != nil {
		return nil, err
	}
	return pattern, nil
}

func sameInECMA(text string) error {
	class := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if strings.IndexByte("AzQECaxpPsS", text[i]) >= 0 {
				return fmt.Errorf(`\%c has different meanings in JSON Schema and Go: write out the characters`, text[i])
			}
		case class:
			if c == ']' {
				class = false
			}
			if strings.HasPrefix(text[i:], "[:") {
				return errors.New("[[:class:]] does not exist in JSON Schema: write out the characters")
			}
		case c == '[':
			class = true
			if strings.HasPrefix(text[i+1:], "]") || strings.HasPrefix(text[i+1:], "^]") {
				return errors.New("an empty class has different meanings in JSON Schema and Go")
			}
			if strings.HasPrefix(text[i+1:], "[:") {
				return errors.New("[[:class:]] does not exist in JSON Schema: write out the characters")
			}
		case c == '(' && strings.HasPrefix(text[i+1:], "?") && !strings.HasPrefix(text[i+1:], "?:"):
			return errors.New("groups that begin with (?, except (?:, do not exist in JSON Schema or have a different meaning")
		}
	}
	return nil
}

// SamePattern reports whether text is a regular expression that has the same meaning in package regexp and in JSON Schema.
func SamePattern(text string) bool {
	_, err := compilePattern(text)
	return text != "" && err == nil
}
