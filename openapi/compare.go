package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A comparison checks whether every value of one schema is also a value of another, and notes
// differences. For requests the old schema must be within the new one; for responses the new one must
// be within the old. It understands the keywords that documents of this package use. Other keywords
// count as equal only if their values are equal.
type comparison struct {
	d            *differ
	a, b         map[string]any // the documents that contain wide and narrow
	wide, narrow any            // every value of wide must be a value of narrow
	answered     bool
}

func (c comparison) run() {
	if c.wide == nil && c.narrow == nil {
		return
	}
	key := [3]string{text(asObject(c.wide), "$ref"), text(asObject(c.narrow), "$ref"), fmt.Sprint(c.answered)}
	if key[0] != "" && key[1] != "" {
		breaks, seen := c.d.seen[key]
		if breaks {
			c.d.report(true, "%s has changed", key[1][strings.LastIndexByte(key[1], '/')+1:])
		}
		if seen {
			return // already compared, or being compared: types may be recursive
		}
		c.d.seen[key] = false
		before := len(c.d.changes)
		defer func() {
			c.d.seen[key] = slices.ContainsFunc(c.d.changes[before:], func(x Change) bool { return x.Breaking })
		}()
	}
	s, t := resolve(c.a, c.wide), resolve(c.b, c.narrow)
	if list(s, "anyOf") != nil || list(t, "anyOf") != nil {
		c.alternatives(s, t)
		return
	}
	c.compare(s, t)
}

// alternatives finds an alternative of the narrow schema for each alternative of the wide one.
func (c comparison) alternatives(s, t map[string]any) {
	for _, one := range choices(s) {
		fits := false
		var best []Change
		for i, other := range choices(t) {
			probe := &differ{old: c.d.old, new: c.d.new, where: c.d.where, seen: c.d.seen}
			inner := c
			inner.d, inner.wide, inner.narrow = probe, one, other
			inner.run()
			if !slices.ContainsFunc(probe.changes, func(x Change) bool { return x.Breaking }) {
				fits = true
				break
			}
			if i == 0 {
				best = probe.changes
			}
		}
		if !fits {
			for _, x := range best {
				if !slices.Contains(c.d.changes, x) {
					c.d.changes = append(c.d.changes, x)
				}
			}
		}
	}
}

func choices(s map[string]any) []any {
	if l := list(s, "anyOf"); l != nil {
		return l
	}
	return []any{s}
}

// say records a breaking difference as a constraint, such as "maximum 50". In a request, values that do not satisfy it are now
// refused. A response may now have such values.
func (c comparison) say(format string, args ...any) {
	prefix := "values must now satisfy "
	if c.answered {
		prefix = "values may no longer satisfy "
	}
	c.d.report(true, "%s", prefix+fmt.Sprintf(format, args...))
}

func (c comparison) compare(s, t map[string]any) {
	if len(t) == 0 {
		return // accepts any value
	}
	if a, b := text(s, "type"), text(t, "type"); b != "" && a != b && !(a == "integer" && b == "number") {
		c.say("type %s", b)
		return
	}
	c.limits(s, t)
	for _, word := range []string{"pattern", "format", "contentEncoding", "contentMediaType", "multipleOf"} {
		if t[word] != nil && !same(s[word], t[word]) {
			c.say("%s %v", word, t[word])
		}
	}
	if t["uniqueItems"] == true && s["uniqueItems"] != true {
		c.say("uniqueItems true")
	}
	c.values(s, t)
	if s["items"] != nil || t["items"] != nil {
		c.inside("#/[]", s["items"], t["items"])
	}
	c.members(s, t)
}

// inside compares the schemas of a part, such as a member.
func (c comparison) inside(place string, s, t any) {
	if s == nil {
		s = map[string]any{}
	}
	if t == nil {
		t = map[string]any{}
	}
	inner := c
	inner.wide, inner.narrow = s, t
	c.d.within(place, inner.run)
}

func (c comparison) limits(s, t map[string]any) {
	for _, word := range []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"} {
		if b, ok := t[word].(float64); ok {
			if a, has := s[word].(float64); (!has || a < b) && !(b == 0 && word != "minimum" && word != "exclusiveMinimum") {
				c.say("%s %v", word, b)
			}
		}
	}
	for _, word := range []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"} {
		if b, ok := t[word].(float64); ok {
			if a, has := s[word].(float64); !has || a > b {
				c.say("%s %v", word, b)
			}
		}
	}
}

// values compares the permitted values.
func (c comparison) values(s, t map[string]any) {
	allowed := list(t, "enum")
	if allowed == nil {
		return
	}
	given := list(s, "enum")
	if given == nil {
		c.say("enum %s", shown(allowed))
		return
	}
	for _, v := range given {
		if !slices.ContainsFunc(allowed, func(w any) bool { return same(v, w) }) {
			if c.answered {
				c.d.report(true, "may now be %s", shown(v))
			} else {
				c.d.report(true, "%s is no longer accepted", shown(v))
			}
		}
	}
}

func (c comparison) members(s, t map[string]any) {
	mine, theirs := member(s, "properties"), member(t, "properties")
	required := list(s, "required")
	for _, name := range list(t, "required") {
		if !slices.Contains(required, name) {
			what := "now required"
			if c.answered {
				what = "may be absent"
			}
			c.d.within(fmt.Sprintf("#/%v", name), func() { c.d.report(true, "%s", what) })
		}
	}
	for _, name := range sortedKeys(mine) {
		other, known := theirs[name]
		switch {
		case known:
			c.inside("#/"+name, mine[name], other)
		case c.answered:
			c.d.within("#/"+name, func() { c.d.report(false, "added") })
		case t["additionalProperties"] == false:
			c.d.within("#/"+name, func() { c.d.report(true, "no longer accepted") })
		}
	}
	for _, name := range sortedKeys(theirs) {
		if _, known := mine[name]; !known && !c.answered && !slices.Contains(list(t, "required"), any(name)) {
			c.d.within("#/"+name, func() { c.d.report(false, "added") })
		}
	}
	a, b := s["additionalProperties"], t["additionalProperties"]
	if asObject(a) != nil && asObject(b) != nil {
		c.inside("#/{}", a, b)
	} else if b == false && a != false && !c.answered && theirs != nil {
		c.say("additionalProperties false")
	}
}

func same(a, b any) bool { return shown(a) == shown(b) }

func shown(v any) string {
	b, _ := json.Marshal(v) // decoded from JSON, so it can be encoded
	return string(b)
}
