package typed

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Name sets the name of the operation. The name is the operationId in the document, the name in generated
// clients, and the route's name for App.URL. Name panics if the name is not valid.
func (op *Op[In, Out]) Name(name string) *Op[In, Out] {
	if !operationName.MatchString(name) {
		panic(fmt.Sprintf("typed: Name(%q): a name has letters, digits, '_', '-' and '.', so that clients can be generated", name))
	}
	op.route.Name(name)
	return op
}

var operationName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Summary sets a short description of the operation. By default the document has a summary that is derived
// from the name: "List books" for listBooks.
func (op *Op[In, Out]) Summary(text string) *Op[In, Out] {
	op.summary = text
	return op
}

// Description sets the full description of the operation, in CommonMark.
func (op *Op[In, Out]) Description(text string) *Op[In, Out] {
	op.description = text
	return op
}

// Tags adds tags to the operation. A document groups operations by tags.
func (op *Op[In, Out]) Tags(tags ...string) *Op[In, Out] {
	op.tags = append(op.tags, tags...)
	return op
}

// Deprecated marks the operation as deprecated.
func (op *Op[In, Out]) Deprecated() *Op[In, Out] {
	op.deprecated = true
	return op
}

// Hidden omits the operation from documents.
func (op *Op[In, Out]) Hidden() *Op[In, Out] {
	op.hidden = true
	return op
}

// Faults declares errors that the action returns. The errors for invalid input need no declaration.
func (op *Op[In, Out]) Faults(faults ...*Fault) *Op[In, Out] {
	for i, f := range faults {
		if f == nil {
			panic(fmt.Sprintf("typed: Faults: fault %d of %s is nil", i, op.label()))
		}
		op.faults = append(op.faults, f.kind())
	}
	return op
}

// Security declares requirements. The caller must satisfy all of them. This package does not check them:
// middleware must do so, see Declares.
func (op *Op[In, Out]) Security(required ...Requirement) *Op[In, Out] {
	op.security = append(op.security, required...)
	return op
}

// Returns declares an answer that the action gives as a dunlin.Response, or that the middleware of the
// operation gives. body is a value of the type of the JSON body, or nil for an answer without a body.
func (op *Op[In, Out]) Returns(status int, body any) *Op[In, Out] {
	a, err := answerOf(status, body)
	if err != nil {
		panic(fmt.Sprintf("typed: Returns(%d) of %s: %v", status, op.label(), err))
	}
	op.returns = append(op.returns, a)
	return op
}

// answerOf returns an answer with a status. Its JSON body has the type of the argument body. If this argument
// is nil, the answer has no body.
func answerOf(status int, body any) (Answer, error) {
	a := Answer{Status: status}
	if status < 200 || status > 599 {
		return a, errors.New("a status is between 200 and 599")
	}
	if body == nil {
		return a, nil
	}
	node, err := outputNode(reflect.TypeOf(body))
	if err != nil {
		return a, err
	}
	a.MediaType, a.Schema = mediaJSON, Schema{node}
	return a, nil
}

// ReturnsBytes declares an answer whose media type is not JSON. mediaType is a type such as "image/png", or a
// range such as "image/*" or "*/*" for files of any type.
func (op *Op[In, Out]) ReturnsBytes(status int, mediaType string) *Op[In, Out] {
	op.returns = append(op.returns, Answer{Status: status, MediaType: mediaType})
	return op
}

// Example adds an example of a request body to the document. It panics if the operation has no JSON body.
func (op *Op[In, Out]) Example(name string, body any) *Op[In, Out] {
	if op.plan.body == nil || op.plan.body.raw {
		panic(fmt.Sprintf("typed: Example(%q): %s takes no JSON", name, op.label()))
	}
	op.examples = append(op.examples, Example{name, body})
	return op
}

// Route returns the route of the operation, on which Timeout, MaxBody and Limit can be set.
func (op *Op[In, Out]) Route() *dunlin.Route { return op.route }

// label returns the name of the operation for messages.
func (o *Operation) label() string {
	info := o.route.Info()
	if info.Name != "" {
		return info.Name
	}
	return info.Methods + " " + info.Pattern
}

// A Description is the content of the entry of an operation in a document.
type Description struct {
	Route              dunlin.RouteInfo
	Summary, Text      string
	Tags               []string
	Deprecated, Hidden bool
	Params             []*Param
	Body               *Body // nil if the operation has no body
	Answers            []Answer
	Security           []Requirement
	Examples           []Example
	InvalidStatus      int
	IgnoresReadOnly    bool // value of Config.IgnoreReadOnly
	IgnoresUnknown     bool // Config.UnknownMembers is UnknownMembersIgnore
}

// A Body describes the request body of an operation.
type Body struct {
	Required   bool
	MediaTypes []string
	Schema     Schema   // schema of a JSON body; zero if the body can be any JSON
	Fields     []*Param // fields of a form
}

// Describe returns the description of the operation for documents.
func (o *Operation) Describe() Description {
	d := Description{
		Route: o.route.Info(), Summary: o.summary, Text: o.description, Tags: slices.Clone(o.tags),
		Deprecated: o.deprecated, Hidden: o.hidden, Params: o.plan.params, Answers: o.Answers(),
		Security: slices.Clone(o.security), Examples: slices.Clone(o.examples), InvalidStatus: o.state.config.InvalidStatus,
		IgnoresReadOnly: o.state.config.IgnoreReadOnly, IgnoresUnknown: o.state.config.UnknownMembers == UnknownMembersIgnore,
	}
	switch p := o.plan; {
	case p.body != nil:
		d.Body = &Body{Required: !p.body.optional, MediaTypes: p.body.mediaTypes(&o.state.config)}
		if !p.body.raw {
			d.Body.Schema = Schema{p.body.node}
		}
	case p.form != nil:
		d.Body = &Body{Required: p.form.required(), MediaTypes: p.form.mediaTypes(), Fields: p.form.fields}
	}
	return d
}

// Operations lists the typed operations of an app in the order of their registration.
func Operations(app *dunlin.App) []*Operation {
	var list []*Operation
	for _, info := range app.Routes() {
		if o, ok := info.About.(*Operation); ok {
			list = append(list, o)
		}
	}
	return list
}

// SchemaAs describes the JSON of T by the type As and a tag. T must have a method such as MarshalJSON or
// MarshalText. Requests are checked by the rules of As and of the tag before T decodes them, and documents
// show these rules. T may be a type of another package:
//
//	func init() {
//		typed.SchemaAs[uuid.UUID, string](`format:"uuid"`)
//		typed.SchemaAs[decimal.Decimal, string](`pattern:"^[0-9]+\\.[0-9]{2}$" example:"9.90"`)
//		typed.SchemaAs[Point, [2]float64](`description:"Longitude and latitude"`)
//		typed.SchemaAs[Money, struct {
//			Amount   int64  `json:"amount"`
//			Currency string `json:"currency" enum:"EUR,USD"`
//		}](``)
//	}
//
// If T has MarshalText, its JSON is a string, and the JSON of As must also be a string. Fields of type T may
// have the tags for rules that As may have, and the tag example. Call SchemaAs in init functions. It panics if
// an operation with T is already registered, if T already has a description, or if T has no such method.
func SchemaAs[T, As any](tag reflect.StructTag) {
	t, as := reflect.TypeFor[T](), reflect.TypeFor[As]()
	if err := schema.Describe(t, as, tag); err != nil {
		panic(fmt.Sprintf("typed: SchemaAs[%s, %s]: %v", schema.TypeText(t), schema.TypeText(as), err))
	}
}

// Format registers a format that the rule format of later registered types can name. The argument what is a
// noun phrase for a value of the format in messages, such as "an IBAN". check reports whether a text has the
// format, and must be safe for concurrent use. Format panics if the name is already registered, or if an
// argument is missing.
func Format(name, what string, check func(string) bool) {
	if name == "" || what == "" || check == nil || !schema.AddFormat(name, what, check) {
		panic(fmt.Sprintf("typed: Format(%q): it needs an unused name, a description and a function", name))
	}
}
