package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Change is a difference between two documents.
type Change struct {
	Breaking bool   // clients of the old document may fail
	Where    string // "GET /books/{id}: response 200: #/title"
	What     string
}

// String returns the change as one line.
func (c Change) String() string {
	if c.Breaking {
		return "breaking: " + c.Where + ": " + c.What
	}
	return "         " + c.Where + ": " + c.What
}

// Diff lists the changes from an old document to a new one that concern clients: operations that
// were removed, requests that are no longer accepted, and responses that old clients do not know.
// Changes of texts and examples are not listed. Both documents are JSON. Changes in parts of the
// old document come first, in the order of the old document. Additions follow, in the order of the
// new document.
func Diff(old, new []byte) ([]Change, error) {
	var d differ
	for _, doc := range []struct {
		name string
		text []byte
		to   *map[string]any
	}{{"old", old, &d.old}, {"new", new, &d.new}} {
		if err := json.Unmarshal(doc.text, doc.to); err != nil {
			return nil, fmt.Errorf("openapi: the %s document: %w", doc.name, err)
		}
		if v, _ := (*doc.to)["openapi"].(string); !strings.HasPrefix(v, "3.") {
			return nil, fmt.Errorf("openapi: the %s document is not an OpenAPI 3 document", doc.name)
		}
	}
	d.paths()
	return d.changes, nil
}

// differ compares two documents.
type differ struct {
	old, new map[string]any
	where    string
	changes  []Change
	seen     map[[3]string]bool // maps each pair of references that was compared to whether it has a breaking change
}

func (d *differ) report(breaking bool, format string, args ...any) {
	c := Change{breaking, d.where, fmt.Sprintf(format, args...)}
	if !slices.Contains(d.changes, c) {
		d.changes = append(d.changes, c)
	}
}

// within calls f with place appended to d.where.
func (d *differ) within(place string, f func()) {
	before := d.where
	if d.where != "" {
		place = d.where + ": " + place
	}
	d.where = place
	f()
	d.where = before
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

func (d *differ) paths() {
	was, is := member(d.old, "paths"), member(d.new, "paths")
	for _, path := range sortedKeys(was) {
		before, after := asObject(was[path]), asObject(is[path])
		for _, method := range methods {
			old, had := before[method].(map[string]any)
			new, has := after[method].(map[string]any)
			d.within(strings.ToUpper(method)+" "+path, func() {
				switch {
				case had && !has:
					d.report(true, "operation removed")
				case had:
					d.operation(old, new)
				case has:
					d.report(false, "operation added")
				}
			})
		}
	}
	for _, path := range sortedKeys(is) {
		for _, method := range methods {
			if _, known := was[path]; !known && asObject(is[path])[method] != nil {
				d.within(strings.ToUpper(method)+" "+path, func() { d.report(false, "operation added") })
			}
		}
	}
}

func (d *differ) operation(old, new map[string]any) {
	if a, b := text(old, "operationId"), text(new, "operationId"); a != b {
		d.report(true, "operationId changed from %s to %s: names in generated clients change", a, b)
	}
	if old["deprecated"] != true && new["deprecated"] == true {
		d.report(false, "operation deprecated")
	}
	if len(list(old, "security")) == 0 && len(list(new, "security")) > 0 {
		d.report(true, "credentials are now required")
	}
	for _, way := range list(old, "security") {
		suffices := func(other any) bool {
			return !slices.ContainsFunc(sortedKeys(asObject(other)), func(name string) bool { return asObject(way)[name] == nil })
		}
		if len(list(new, "security")) > 0 && !slices.ContainsFunc(list(new, "security"), suffices) {
			d.report(true, "the credentials %s are no longer sufficient", strings.Join(sortedKeys(asObject(way)), " and "))
		}
	}
	d.parameters(d.params(d.old, old), d.params(d.new, new))
	d.body(resolve(d.old, old["requestBody"]), resolve(d.new, new["requestBody"]))
	d.answers(member(old, "responses"), member(new, "responses"))
}

// params returns the parameters of an operation by their location and name.
func (d *differ) params(doc, op map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, p := range list(op, "parameters") {
		q := resolve(doc, p)
		all[text(q, "in")+" parameter "+text(q, "name")] = q
	}
	return all
}

func (d *differ) parameters(old, new map[string]map[string]any) {
	for _, name := range sortedKeys(old) {
		d.within(name, func() {
			p, q := old[name], new[name]
			switch {
			case q == nil:
				d.report(strings.HasPrefix(name, "path "), "removed")
			case p["required"] != true && q["required"] == true:
				d.report(true, "now required")
			case p["explode"] != q["explode"]:
				d.report(true, "the separator of its values has changed")
			}
			if q != nil {
				d.input(p["schema"], q["schema"])
			}
		})
	}
	for _, name := range sortedKeys(new) {
		if old[name] == nil {
			required := new[name]["required"] == true
			d.within(name, func() {
				d.report(required, "%s", map[bool]string{true: "added and required", false: "added"}[required])
			})
		}
	}
}

func (d *differ) body(old, new map[string]any) {
	d.within("body", func() {
		if len(old) == 0 {
			if new["required"] == true {
				d.report(true, "now required")
			}
			return
		}
		if len(new) == 0 {
			d.report(false, "no longer read")
			return
		}
		if old["required"] != true && new["required"] == true {
			d.report(true, "now required")
		}
		before, after := member(old, "content"), member(new, "content")
		for _, media := range sortedKeys(before) {
			if after[media] == nil {
				d.report(true, "%s is no longer accepted", media)
				continue
			}
			d.input(asObject(before[media])["schema"], asObject(after[media])["schema"])
		}
	})
}

func (d *differ) answers(old, new map[string]any) {
	for _, status := range sortedKeys(old) {
		d.within("response "+status, func() {
			if new[status] == nil {
				d.report(status < "400", "removed")
				return
			}
			before, after := resolve(d.old, old[status]), resolve(d.new, new[status])
			d.headers(member(before, "headers"), member(after, "headers"))
			a, b := member(before, "content"), member(after, "content")
			for _, media := range sortedKeys(a) {
				if b[media] == nil {
					d.report(true, "media type %s removed", media)
					continue
				}
				for _, kind := range []string{"schema", "itemSchema"} {
					d.output(asObject(a[media])[kind], asObject(b[media])[kind])
				}
			}
			for _, media := range sortedKeys(b) {
				if a[media] == nil {
					d.report(true, "media type %s added", media)
				}
			}
		})
	}
	for _, status := range sortedKeys(new) {
		if old[status] == nil {
			d.within("response "+status, func() { d.report(status < "400", "added") })
		}
	}
}

func (d *differ) headers(old, new map[string]any) {
	for _, name := range sortedKeys(old) {
		before, after := resolve(d.old, old[name]), resolve(d.new, new[name])
		if before["required"] == true && after["required"] != true {
			d.within("header "+name, func() { d.report(true, "may be absent") })
		}
	}
}

// input compares the schemas of a request. Every request that was accepted before must still be
// accepted.
func (d *differ) input(old, new any) {
	d.seen = map[[3]string]bool{}
	c := comparison{d: d, a: d.old, b: d.new, subset: old, superset: new}
	c.run()
}

// output compares the schemas of a response. A response must not contain values that old clients do
// not know. New members are permitted, because clients ignore them.
func (d *differ) output(old, new any) {
	d.seen = map[[3]string]bool{}
	c := comparison{d: d, a: d.new, b: d.old, subset: new, superset: old, answered: true}
	c.run()
}

func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func member(o map[string]any, name string) map[string]any { return asObject(o[name]) }

func text(o map[string]any, name string) string {
	s, _ := o[name].(string)
	return s
}

func list(o map[string]any, name string) []any {
	l, _ := o[name].([]any)
	return l
}

// resolve returns the object to which a reference in a document refers, or v itself if v is not a
// reference.
func resolve(doc map[string]any, v any) map[string]any {
	o := asObject(v)
	for range 20 { // limits chains of references, which may be cyclic
		ref := text(o, "$ref")
		if ref == "" {
			break
		}
		at := any(doc)
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = asObject(at)[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		}
		found := map[string]any{}
		for name, value := range asObject(at) {
			found[name] = value
		}
		for name, value := range o {
			if name != "$ref" {
				found[name] = value
			}
		}
		o = found
	}
	return o
}
