package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/typed"
)

// Config has the parts of a document that do not follow from the operations.
type Config struct {
	// Title is the name of the API; the default is "API". Version is the version of the API, not of
	// OpenAPI; the default is "0".
	Title, Version       string
	Summary, Description string // Description is in CommonMark
	TermsOfService       string // a URL
	Contact              Contact
	License              License
	Servers              []Server // default: the server that serves the document
	Tags                 []Tag    // in the order in which they are displayed

	// OpenAPI is the version of the specification: "3.1" or "3.2". The default is "3.1". Only a 3.2
	// document can describe the elements of event streams and JSON Lines.
	OpenAPI string

	// Routes selects the routes of one version, see [dunlin.Group.Version], so that each version
	// can have its own document. The document contains the routes of this version and the routes
	// without a version. If Routes is empty, it contains only the routes without a version.
	Routes string
}

// Contact is the contact for questions about the API.
type Contact struct{ Name, URL, Email string }

// License is the license of the API. Identifier is an SPDX identifier. Only one of Identifier and
// URL may be set.
type License struct{ Name, Identifier, URL string }

// Server is a base URL of the API.
type Server struct{ URL, Description string }

// Tag describes a group of operations, which have the tag Name.
type Tag struct{ Name, Description string }

// generator writes one document.
type generator struct {
	v32             bool
	problemMedia    string       // media type of problems in the app's own format; empty for RFC 9457
	envelope        *schema.Node // schema of the body of problems in the app's own format
	invalid         bool         // the component InvalidProblem is used
	ignoreReadOnly  bool         // value of typed.Config.IgnoreReadOnly
	ignoreUnknown   bool         // typed.Config.UnknownMembers is UnknownMembersIgnore
	components      map[reflect.Type]*component
	types           []reflect.Type
	names           map[reflect.Type]string
	ids, given      map[string]bool // ids are the IDs of operations; given are the IDs that Op.Name has set
	schemes         map[string]string
	sharedResponses map[string]*object
	shared          map[answerKey]string // references to answers that operations share
}

// Document returns the document of the typed operations of app, as indented JSON that ends with a
// line break. The same operations always give the same document. Document returns an error if the
// document would be ambiguous: if two types would have the same name in the document, or if OpenAPI
// cannot distinguish two operations.
func Document(app *dunlin.App, c Config) ([]byte, error) {
	doc, err := build(app, c)
	if err != nil {
		return nil, err
	}
	room := make([]byte, 0, 16<<10+len(typed.Operations(app))*8<<10)
	return append(appendJSON(room, doc, 0), '\n'), nil
}

func build(app *dunlin.App, c Config) (*object, error) {
	g := &generator{
		components: map[reflect.Type]*component{}, ids: map[string]bool{},
		given: map[string]bool{}, schemes: map[string]string{}, sharedResponses: map[string]*object{}, shared: map[answerKey]string{},
	}
	version := "3.1.1"
	switch c.OpenAPI {
	case "", "3.1":
	case "3.2":
		g.v32, version = true, "3.2.0"
	default:
		return nil, fmt.Errorf("openapi: Config.OpenAPI is %q: it must be 3.1 or 3.2", c.OpenAPI)
	}
	if format := app.Config().Problems; format != nil {
		var body reflect.Type
		var err error
		g.problemMedia, body = ext.ProblemFormat(format)
		if g.envelope, err = schema.Of(body); err != nil {
			return nil, fmt.Errorf("openapi: the body of problems: %w", err)
		}
		g.collect(g.envelope, output)
	}
	list := selectOperations(app, c.Routes)
	for i := range list {
		g.ignoreReadOnly, g.ignoreUnknown = list[i].IgnoresReadOnly, list[i].IgnoresUnknown // these are settings of the app, which are the same for all operations
		g.collectOperation(&list[i])
	}
	sortTypes(g.types)
	g.splitTypes()
	var err error
	if g.names, err = nameTypes(g.types); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	for _, d := range list { // names that were given take precedence over generated names
		if d.Route.Name != "" && !strings.Contains(d.Route.Methods, ",") {
			g.given[d.Route.Name] = true
		}
	}
	paths, err := g.paths(list)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	schemas, err := g.componentSchemas(g.problems())
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	doc := new(object).put("openapi", version).put("info", info(c))
	var servers, tags []any
	for _, s := range c.Servers {
		servers = append(servers, new(object).put("url", s.URL).set("description", s.Description))
	}
	if servers == nil {
		servers = []any{new(object).put("url", "/")} // the default of the specification
	}
	for _, t := range c.Tags {
		tags = append(tags, new(object).put("name", t.Name).set("description", t.Description))
	}
	// An operation without security requirements needs no credentials.
	doc.set("servers", servers).put("security", []any{}).put("paths", paths)
	components := new(object).set("schemas", schemas).set("responses", g.componentResponses()).set("securitySchemes", g.securitySchemes())
	return doc.set("components", components).set("tags", tags), nil
}

func info(c Config) *object {
	if c.Title == "" {
		c.Title = "API"
	}
	if c.Version == "" {
		c.Version = "0"
	}
	o := new(object).put("title", c.Title).set("summary", c.Summary).set("description", c.Description).set("termsOfService", c.TermsOfService)
	o.set("contact", new(object).set("name", c.Contact.Name).set("url", c.Contact.URL).set("email", c.Contact.Email))
	o.set("license", new(object).set("name", c.License.Name).set("identifier", c.License.Identifier).set("url", c.License.URL))
	return o.put("version", c.Version)
}

// selectOperations returns the operations of one version, and the operations without a version. It
// omits an operation without a version if the version has an operation with the same method and
// path.
func selectOperations(app *dunlin.App, version string) []typed.Description {
	var list []typed.Description
	own := map[string]bool{}
	all := typed.Operations(app)
	key := func(d *typed.Description) string {
		return d.Route.Methods + " " + d.Route.Host + shapeOf(schema.Template(d.Route.Pattern))
	}
	for _, o := range all {
		d := o.Describe()
		if d.Route.Version == version && version != "" {
			own[key(&d)] = true
		}
		if d.Route.Version == version || d.Route.Version == "" {
			list = append(list, d)
		}
	}
	return slices.DeleteFunc(list, func(d typed.Description) bool {
		return d.Hidden || d.Route.Version != version && own[key(&d)]
	})
}

// collectOperation records the types that the document needs for an operation.
func (g *generator) collectOperation(d *typed.Description) {
	for _, p := range d.Params {
		g.collect(p.Schema.Node(), input)
	}
	if d.Body != nil {
		g.collect(d.Body.Schema.Node(), input)
		for _, p := range d.Body.Fields {
			g.collect(p.Schema.Node(), input)
		}
	}
	for _, a := range d.Answers {
		g.collect(a.Schema.Node(), output)
		if g.v32 {
			g.collect(a.Item.Node(), output)
		}
		for _, h := range a.Headers {
			g.collect(h.Schema.Node(), output)
		}
	}
}

// paths writes all operations by path template, in the order of registration.
func (g *generator) paths(list []typed.Description) (*object, error) {
	paths := new(object)
	type owner struct{ template, place string }
	shapes := map[string]owner{}
	for i := range list {
		d := &list[i]
		path := schema.Template(d.Route.Pattern)
		shape := shapeOf(path)
		if o, taken := shapes[shape]; taken && o.template != path {
			return nil, fmt.Errorf("OpenAPI cannot tell the paths %s (registered at %s) and %s (registered at %s) apart: "+
				"give their parameters the same names, or hide one operation with Hidden", o.template, o.place, path, d.Route.Place)
		}
		shapes[shape] = owner{path, d.Route.Place}
		item, _ := paths.get(path).(*object)
		if item == nil {
			item = new(object)
			paths.put(path, item)
		}
		for method := range strings.SplitSeq(d.Route.Methods, ",") {
			method = strings.TrimSpace(method)
			key := strings.ToLower(method)
			if item.get(key) != nil {
				return nil, fmt.Errorf("two operations are %s %s, one of them registered at %s: they differ in properties that OpenAPI does not have, "+
					"such as constraints or hosts; hide one with Hidden", method, path, d.Route.Place)
			}
			o, err := g.operation(d, method, path)
			if err != nil {
				return nil, err
			}
			item.put(key, o)
		}
	}
	return paths, nil
}
