package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Tags has the values of a struct tag by key.
type Tags map[string]string

// ParseTags parses a struct tag. Unlike package reflect it returns an error for a malformed tag and for a misspelled rule,
// because a misspelled rule would have no effect.
func ParseTags(tag reflect.StructTag) (Tags, error) {
	if tag == "" {
		return nil, nil
	}
	tags := Tags{}
	rest := strings.TrimLeft(string(tag), " ")
	for rest != "" {
		name, after, found := strings.Cut(rest, ":")
		if !found || name == "" || strings.ContainsAny(name, " \"") {
			return nil, fmt.Errorf("malformed tag at %q", rest)
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil || quoted[0] != '"' {
			return nil, fmt.Errorf("malformed tag at %q", rest)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		if _, twice := tags[name]; twice {
			return nil, fmt.Errorf("the tag has %q twice", name)
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		tags[name] = value
		rest = strings.TrimLeft(after[len(quoted):], " ")
	}
	return tags, nil
}

// otherTags has the tags that are neither rules nor annotations.
var otherTags = []string{"default", "dependentRequired", unknownTag}

// unknownTag is the tag of a blank field that decides whether its struct accepts unknown members.
const unknownTag = "additionalProperties"

var everyName = slices.Concat(sortedRules, annotations, otherTags)

// checkName returns an error for a name that differs from a known name only in case, for an unknown name after a prefix such as
// "items.", and for "required".
func checkName(name string) error {
	for _, prefix := range []string{"items.", "additionalProperties.", "propertyNames."} {
		if after, ok := strings.CutPrefix(name, prefix); ok {
			if !known(after) && !strings.Contains(after, ".") {
				return fmt.Errorf("unknown rule %q", name)
			}
			return checkName(after)
		}
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)) {
			return fmt.Errorf("unknown rule %q: the prefix is spelled %q", name, prefix)
		}
	}
	if name == "required" {
		return errors.New(`"required" is not a tag: a field without omitempty, omitzero or default is required`)
	}
	if known(name) {
		return nil
	}
	for _, right := range everyName {
		if strings.EqualFold(name, right) {
			return fmt.Errorf("unknown rule %q: the name is %q", name, right)
		}
	}
	return nil
}

func known(name string) bool {
	return ruleNames[name] != nil || slices.Contains(annotations, name) || slices.Contains(otherTags, name)
}

func (t Tags) or(name, fallback string) string {
	if text, ok := t[name]; ok {
		return text
	}
	return fallback
}

// hasAny reports whether the tags have a rule or an annotation with the prefix. With the empty prefix, any tag counts.
func (t Tags) hasAny(prefix string) bool {
	for name := range t {
		if after, ok := strings.CutPrefix(name, prefix); ok && (prefix != "" || known(after) || strings.Contains(after, ".")) {
			return true
		}
	}
	return false
}
