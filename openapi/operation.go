package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/router"
	"github.com/dunlinhttp/dunlin/typed"
)

// operation writes one operation for one of its methods.
func (g *generator) operation(d *typed.Description, method, template string) (*object, error) {
	o := new(object)
	id := d.Route.Name
	if !g.given[id] {
		id = operationID(method, template)
		for base, n := id, 2; g.ids[id] || g.given[id]; n++ {
			id = fmt.Sprint(base, n)
		}
	}
	g.ids[id] = true
	summary := d.Summary
	if summary == "" && g.given[id] {
		summary = words(id)
	}
	o.set("tags", d.Tags).set("summary", summary).set("description", d.Text).put("operationId", id)
	var params []*object
	for _, p := range d.Params {
		if q := g.parameter(p, d.Route.Params); q != nil {
			params = append(params, q)
		}
	}
	if len(params) > 0 {
		o.put("parameters", params)
	}
	if d.Body != nil {
		body, err := g.body(d)
		if err != nil {
			return nil, err
		}
		o.put("requestBody", body)
	}
	o.put("responses", g.responses(d.Answers))
	o.set("deprecated", d.Deprecated)
	if len(d.Security) > 0 {
		ways, err := g.security(d.Security)
		if err != nil {
			return nil, err
		}
		o.put("security", ways)
	}
	if d.Route.Host != "" {
		o.put("servers", []any{hostServer(d.Route.Host)})
	}
	return o, nil
}

// words converts the name of an operation to a readable line: listBooks becomes "List books".
func words(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.':
			c = ' '
		case i == 0:
			c = unicode.ToUpper(c)
		case unicode.IsUpper(c):
			if last := name[i-1]; 'a' <= last && last <= 'z' || '0' <= last && last <= '9' {
				b.WriteByte(' ')
				if i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' { // otherwise the letter belongs to an acronym
					c = unicode.ToLower(c)
				}
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}

// ignoredHeaders are headers that a document describes elsewhere, and not as parameters.
var ignoredHeaders = map[string]bool{"Accept": true, "Content-Type": true, "Authorization": true}

// parameter writes one parameter. It returns nil if a document describes the parameter elsewhere.
func (g *generator) parameter(p *typed.Param, route []router.Param) *object {
	var in router.Param
	for _, q := range route {
		if p.In == "path" && q.Name == p.Name {
			in = q
		}
	}
	if in.InHost || p.In == "header" && ignoredHeaders[http.CanonicalHeaderKey(p.Name)] {
		return nil
	}
	o := new(object).put("name", p.Name).put("in", p.In)
	meta := p.Schema.Node().Meta
	o.set("description", meta.Description)
	o.set("required", p.Required || p.In == "path")
	o.set("deprecated", meta.Deprecated)
	if p.List {
		if p.In == "query" {
			o.put("style", "form").put("explode", !p.Comma)
		}
	}
	schemaMeta := meta
	schemaMeta.Description, schemaMeta.Deprecated, schemaMeta.Example = "", false, nil // these are written in the parameter object, not in its schema
	s := g.schemaAs(p.Schema.Node(), input, schemaMeta, false)
	if p.In == "path" {
		constrain(s, p.Schema.Node(), in)
	}
	if p.Default != nil {
		s.put("default", json.RawMessage(p.Default))
	}
	o.put("schema", s)
	if meta.Example != nil {
		o.put("example", json.RawMessage(meta.Example))
	}
	return o
}

// constrain adds the constraint of the route's pattern to the schema of a path parameter that is a string.
func constrain(s *object, n *schema.Node, p router.Param) {
	if !n.IsText() {
		return
	}
	if !p.Rest && !n.Rules.MinLength.Set {
		s.put("minLength", 1)
	}
	if f := constraintFormats[p.Constraint]; f != "" && s.get("format") == nil {
		s.put("format", f)
	} else if pattern := constraintPatterns[p.Constraint]; pattern != "" && s.get("pattern") == nil {
		s.put("pattern", pattern)
	} else if f == "" && pattern == "" && schema.SamePattern(p.Constraint) && s.get("pattern") == nil {
		s.put("pattern", "^(?:"+p.Constraint+")$")
	}
}

// body writes the request body of an operation.
func (g *generator) body(d *typed.Description) (*object, error) {
	b := d.Body
	content := new(object)
	for _, media := range b.MediaTypes {
		m := new(object)
		switch {
		case b.Fields != nil:
			g.form(m, b.Fields, media)
		case !b.Schema.IsZero():
			m.put("schema", g.schema(b.Schema.Node(), input))
			examples := new(object)
			for _, e := range d.Examples {
				value, err := jsonwire.AppendValue(nil, e.Value, jsonwire.Options{View: jsonwire.Requests})
				if err != nil {
					return nil, fmt.Errorf("example %q of %s: %w", e.Name, d.Route.Pattern, err)
				}
				examples.put(e.Name, new(object).put("value", json.RawMessage(value)))
			}
			m.set("examples", examples)
		case media == "multipart/form-data":
			m.put("schema", new(object).put("type", "object"))
		}
		content.put(media, m)
	}
	return new(object).set("required", b.Required).put("content", content), nil
}

// form writes the fields of a form.
func (g *generator) form(m *object, fields []*typed.Param, media string) {
	properties, required, encoding := new(object), []string{}, new(object)
	for _, p := range fields {
		node := *p.Schema.Node()
		types := node.Meta.ContentType
		node.Nullable = false
		s := g.schema(&node, input)
		if p.Default != nil {
			s.put("default", json.RawMessage(p.Default))
		}
		properties.put(p.Name, s)
		if p.Required {
			required = append(required, p.Name)
		}
		if p.File && types != "" {
			encoding.put(p.Name, new(object).put("contentType", types))
		}
	}
	m.put("schema", new(object).put("type", "object").set("properties", properties).set("required", required))
	if media == "multipart/form-data" {
		m.set("encoding", encoding)
	}
}

// security returns the combinations of schemes that satisfy all requirements, as OpenAPI security requirement objects. An
// optional requirement may need no scheme. An empty object permits requests without credentials.
func (g *generator) security(all []typed.Requirement) ([]*object, error) {
	combinations := []*object{new(object)}
	for _, q := range all {
		var next []*object
		for _, combination := range combinations {
			for _, alternative := range q.Alternatives() {
				if alternative.IsZero() {
					next = append(next, combination)
					continue
				}
				if err := g.scheme(alternative.Scheme); err != nil {
					return nil, err
				}
				extended := &object{members: slices.Clone(combination.members)}
				if extended.get(alternative.Scheme.Name) == nil {
					extended.put(alternative.Scheme.Name, append([]string{}, alternative.Scopes...))
				}
				next = append(next, extended)
			}
		}
		combinations = next
	}
	return combinations, nil
}

// scheme records a security scheme. If several schemes have the same name, they must be identical.
func (g *generator) scheme(s typed.SecurityScheme) error {
	o := new(object).put("type", s.Type).set("description", s.Description)
	switch s.Type {
	case "http":
		o.put("scheme", s.Scheme).set("bearerFormat", s.Format)
	case "apiKey":
		o.put("in", s.In).put("name", s.Parameter)
	case "openIdConnect":
		o.put("openIdConnectUrl", s.URL)
	case "oauth2":
		scopes := new(object)
		for _, name := range sortedKeys(s.Scopes) {
			scopes.put(name, s.Scopes[name])
		}
		o.put("flows", new(object).put("clientCredentials", new(object).put("tokenUrl", s.TokenURL).put("scopes", scopes)))
	case "mutualTLS":
	default:
		return fmt.Errorf("the security scheme %q is of type %q, which OpenAPI does not have", s.Name, s.Type)
	}
	if s.Name == "" {
		return errors.New("a security scheme has no name")
	}
	text := string(appendJSON(nil, o, 0))
	if have, ok := g.schemes[s.Name]; ok && have != text {
		return fmt.Errorf("two security schemes are called %q", s.Name)
	}
	g.schemes[s.Name] = text
	return nil
}

func (g *generator) securitySchemes() *object {
	all := new(object)
	for _, name := range sortedKeys(g.schemes) {
		all.put(name, json.RawMessage(g.schemes[name]))
	}
	return all
}

// hostServer returns a server object for the routes of one host. Parameters of the host pattern become server variables.
func hostServer(pattern string) *object {
	host := schema.Template(pattern)
	variables := new(object)
	for rest := host; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		var name string
		name, rest, _ = strings.Cut(after, "}")
		variables.put(name, new(object).put("default", name))
	}
	return new(object).put("url", "https://"+host).set("variables", variables)
}
