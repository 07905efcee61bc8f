package openapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/typed"
)

const mediaProblem = "application/problem+json"

// responses writes all answers of an operation. It writes no default response, because the list of answers is
// complete.
func (g *generator) responses(answers []typed.Answer) *object {
	all := new(object)
	for i := range answers {
		a := &answers[i]
		all.put(strconv.Itoa(a.Status), g.response(a))
	}
	return all
}

func (g *generator) response(a *typed.Answer) *object {
	common := a.Problem && len(a.Faults) == 0 && len(a.Headers) == 0
	key := answerKey{a.Status, a.Description, a.Invalid}
	if common && g.shared[key] != "" {
		return new(object).put("$ref", g.shared[key])
	}
	r := new(object).put("description", describe(a))
	headers := new(object)
	for _, h := range a.Headers {
		header := new(object).set("required", h.Always)
		headers.put(h.Name, header.put("schema", g.schema(h.Schema.Node(), output)))
	}
	if a.Problem && (a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests) {
		headers.put("Retry-After", new(object).put("description", "Seconds after which the request may be tried again").
			put("schema", new(object).put("type", "integer").put("minimum", 0)))
	}
	r.set("headers", headers)
	switch {
	case a.Problem && g.envelope != nil:
		r.put("content", new(object).put(g.problemMedia, new(object).put("schema", g.schema(g.envelope, output))))
	case a.Problem:
		r.put("content", new(object).put(mediaProblem, g.problem(a)))
	case a.MediaType != "":
		content := new(object).put(a.MediaType, g.media(a))
		for _, name := range a.Formats {
			content.put(name, new(object)) // the names of members may differ from those in JSON
		}
		r.put("content", content)
	}
	if common {
		g.shared[key] = g.share(a, r)
		return new(object).put("$ref", g.shared[key])
	}
	return r
}

// answerKey identifies a problem that belongs to no fault.
type answerKey struct {
	status      int
	description string
	invalid     bool
}

// share adds an answer that many operations have to the components. It returns the reference to the component.
func (g *generator) share(a *typed.Answer, r *object) string {
	base := plainWords.Replace(http.StatusText(a.Status))
	if base == "" {
		base = "Status" + strconv.Itoa(a.Status)
	}
	name := base
	for n := 2; g.sharedResponses[name] != nil; n++ {
		name = base + strconv.Itoa(n)
	}
	g.sharedResponses[name] = r
	return "#/components/responses/" + name
}

var plainWords = strings.NewReplacer(" ", "", "'", "", "-", "")

// describe returns the description of an answer. OpenAPI requires a description, even if the status is
// self-explanatory.
func describe(a *typed.Answer) string {
	text := a.Description
	for _, f := range a.Faults {
		switch {
		case text == "":
			text = f.Title()
		case !slices.Contains(strings.Split(text, "; "), f.Title()): // the description may already contain the title
			text += "; " + f.Title()
		}
	}
	if text == "" {
		text = http.StatusText(a.Status)
	}
	if text == "" {
		text = "Status " + strconv.Itoa(a.Status)
	}
	return text
}

// media writes the content of an answer that is not a problem.
func (g *generator) media(a *typed.Answer) *object {
	m := new(object)
	switch {
	case !a.Item.IsZero() && g.v32:
		item := g.schema(a.Item.Node(), output)
		if a.MediaType == "text/event-stream" {
			item = eventSchema(item)
		}
		m.put("itemSchema", item)
	case !a.Item.IsZero(): // OpenAPI 3.1 cannot describe the elements of a stream
		m.put("schema", new(object).put("type", "string"))
	case !a.Schema.IsZero():
		m.put("schema", g.schema(a.Schema.Node(), output))
	}
	return m
}

// eventSchema returns the schema of an event in an event stream (OpenAPI 3.2 section 4.14.4).
func eventSchema(data *object) *object {
	text := func() *object { return new(object).put("type", "string") }
	return new(object).put("type", "object").put("properties", new(object).
		put("data", text().put("contentMediaType", "application/json").put("contentSchema", data)).
		put("event", text()).put("id", text()).
		put("retry", new(object).put("type", "integer").put("minimum", 0))).
		put("required", []string{"data"})
}

// problem writes the content of a problem. If only faults have this status, the content lists the possible faults.
func (g *generator) problem(a *typed.Answer) *object {
	base := "Problem"
	if a.Invalid {
		base, g.invalid = "InvalidProblem", true
	}
	s := new(object).put("$ref", "#/components/schemas/"+base)
	m := new(object)
	if len(a.Faults) > 0 && !a.Other {
		ids := make([]string, len(a.Faults))
		for i, f := range a.Faults {
			ids[i] = f.ID()
		}
		s = new(object).put("allOf", []any{s, new(object).put("type", "object").
			put("properties", new(object).put("type", new(object).put("type", "string").put("enum", ids))).
			put("required", []string{"type"})})
	}
	m.put("schema", s)
	examples := new(object)
	for _, f := range a.Faults {
		examples.put(exampleName(f.ID()), new(object).put("summary", f.Title()).put("value", new(object).
			put("type", f.ID()).put("title", f.Title()).put("status", f.Status())))
	}
	return m.set("examples", examples)
}

func exampleName(id string) string {
	id = id[strings.LastIndexByte(id, '/')+1:]
	return notInNames.ReplaceAllString(id, "-")
}

// problems returns the schemas of RFC 9457 and of the members that package typed adds. It returns nil if the app has
// its own format of problems.
func (g *generator) problems() map[string]*object {
	text := func(description string) *object {
		return new(object).put("type", "string").put("description", description)
	}
	properties := func() *object {
		return new(object).
			put("type", new(object).put("type", "string").put("format", "uri-reference").put("description", "URI of the kind of problem; absent if the status identifies it")).
			put("title", text("Title of the type, the same for every occurrence")).
			put("status", new(object).put("type", "integer").put("minimum", 400).put("maximum", 599)).
			put("detail", text("Explanation of this occurrence")).
			put("instance", new(object).put("type", "string").put("format", "uri-reference"))
	}
	if g.envelope != nil {
		return nil
	}
	all := map[string]*object{
		"Problem": new(object).put("type", "object").put("description", "A problem of RFC 9457").
			put("properties", properties()).put("required", []string{"title", "status"}),
	}
	if !g.invalid {
		return all
	}
	all["InvalidProblem"] = new(object).put("type", "object").put("description", "A problem of RFC 9457 that lists what is wrong with a request").
		put("properties", properties().put("errors", new(object).put("type", "array").
			put("items", new(object).put("$ref", "#/components/schemas/Violation")))).
		put("required", []string{"title", "status"})
	all["Violation"] = new(object).put("type", "object").put("description", "An error in a request").
		put("properties", new(object).
			put("in", new(object).put("type", "string").put("enum", []string{"body", "path", "query", "header", "cookie", "form"})).
			put("parameter", text("The parameter; absent for the body")).
			put("pointer", text("JSON pointer to the value, as a URI fragment")).
			put("rule", text("The broken rule, as a keyword of JSON Schema")).
			put("limit", text("Limit or pattern of the rule")).
			put("detail", text("Explanation for the sender"))).
		put("required", []string{"in", "rule", "detail"})
	return all
}

// componentResponses writes the answers that operations share, sorted by name.
func (g *generator) componentResponses() *object {
	all := new(object)
	for _, name := range sortedKeys(g.sharedResponses) {
		all.put(name, g.sharedResponses[name])
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
