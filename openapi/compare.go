package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A comparison checks whether every value of one schema is also a value of another schema, and notes differences. For
// requests, every value of the old schema must be a value of the new schema. For responses, every value of the new schema must
// be a value of the old schema. A comparison understands the keywords that documents of this package use. It considers other
// keywords equal only if their values are equal.
type comparison struct {
	d                *differ
	a, b             map[string]any // the documents that contain subset and superset
	subset, superset any            // every value of subset must be a value of superset
	answered         bool           // the schemas describe values of responses
}

func (c comparison) run() {
	if c.subset == nil && c.superset == nil {
		return
	}
	key := [3]string{text(asObject(c.subset), "$ref"), text(asObject(c.superset), "$ref"), fmt.Sprint(c.answered)}
	if key[0] != "" && key[1] != "" {
		breaks, seen := c.d.seen[key]
		if breaks {
			c.d.report(true, "%s has changed", key[1][strings.LastIndexByte(key[1], '/')+1:])
		}
		if seen {
			return // types may be recursive, so this pair may already have been compared, or its comparison may have begun
		}
		c.d.seen[key] = false
		before := len(c.d.changes)
		defer func() {
			c.d.seen[key] = slices.ContainsFunc(c.d.changes[before:], func(x Change) bool { return x.Breaking })
		}()
	}
	s, t := resolve(c.a, c.subset), resolve(c.b, c.superset)
	if list(s, "anyOf") != nil || list(t, "anyOf") != nil {
		c.alternatives(s, t)
		return
	}
	c.compare(s, t)
}

// alternatives checks that each alternative of the schema s has an alternative of the schema t that contains all its values.
// If no alternative of t does, it records the differences to the first alternative of t.
func (c comparison) alternatives(s, t map[string]any) {
	for _, one := range choices(s) {
		fits := false
		var best []Change
		for i, other := range choices(t) {
			probe := &differ{old: c.d.old, new: c.d.new, where: c.d.where, seen: c.d.seen}
			inner := c
			inner.d, inner.subset, inner.superset = probe, one, other
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

// say records a breaking difference as a constraint, such as "maximum 50". In a request, values that do not satisfy the
// constraint are now refused. A response may now contain values that do not satisfy it.
func (c comparison) say(format string, args ...any) {
	prefix := "values must now satisfy "
	if c.answered {
		prefix = "values may no longer satisfy "
	}
	c.d.report(true, "%s", prefix+fmt.Sprintf(format, args...))
}

func (c comparison) compare(s, t map[string]any) {
	if len(t) == 0 {
		return // t accepts any value
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

// inside compares the schemas of a part of the values, such as a member.
func (c comparison) inside(place string, s, t any) {
	if s == nil {
		s = map[string]any{}
	}
	if t == nil {
		t = map[string]any{}
	}
	inner := c
	inner.subset, inner.superset = s, t
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

// values compares the lists of permitted values.
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
	b, _ := json.Marshal(v) // v was decoded from JSON, so it can be encoded
	return string(b)
}
