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

// Name names the operation: the document's operationId, which generated clients call
// it by, and the route's name for App.URL.
func (op *Op[In, Out]) Name(name string) *Op[In, Out] {
	if !operationName.MatchString(name) {
		panic(fmt.Sprintf("typed: Name(%q): a name has letters, digits, '_', '-' and '.', so that clients can be generated", name))
	}
	op.route.Name(name)
	return op
}

var operationName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Summary says in a few words what the operation does, Description in as many as it
// takes (CommonMark). Without it the document makes one of the name: "List books" of listBooks.
func (op *Op[In, Out]) Summary(text string) *Op[In, Out] {
	op.summary = text
	return op
}

// Description says what the operation does, in CommonMark.
func (op *Op[In, Out]) Description(text string) *Op[In, Out] {
	op.description = text
	return op
}

// Tags groups the operation with others in the document.
func (op *Op[In, Out]) Tags(tags ...string) *Op[In, Out] {
	op.tags = append(op.tags, tags...)
	return op
}

// Deprecated says that the operation should not be used any more.
func (op *Op[In, Out]) Deprecated() *Op[In, Out] {
	op.deprecated = true
	return op
}

// Hidden leaves the operation out of documents.
func (op *Op[In, Out]) Hidden() *Op[In, Out] {
	op.hidden = true
	return op
}

// Faults declares the errors that the action returns beside those of its input.
func (op *Op[In, Out]) Faults(faults ...*Fault) *Op[In, Out] {
	for i, f := range faults {
		if f == nil {
			panic(fmt.Sprintf("typed: Faults: fault %d of %s is nil", i, op.label()))
		}
		op.faults = append(op.faults, f.kind())
	}
	return op
}

// Security says what the caller must prove, all of it; the check is middleware's, see Declares.
func (op *Op[In, Out]) Security(required ...Requirement) *Op[In, Out] {
	op.security = append(op.security, required...)
	return op
}

// Returns declares an answer that the action makes itself, as a dunlin.Response or by
// its middleware: the status, and a value of the type that its JSON body has, nil for none.
func (op *Op[In, Out]) Returns(status int, body any) *Op[In, Out] {
	a, err := answerOf(status, body)
	if err != nil {
		panic(fmt.Sprintf("typed: Returns(%d) of %s: %v", status, op.label(), err))
	}
	op.returns = append(op.returns, a)
	return op
}

// answerOf is the answer of a status and a value of the type of its JSON body, nil for none.
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

// ReturnsBytes declares an answer of another media type than JSON: "image/png", or a range of them,
// "image/*" or "*/*", for files of whatever type.
func (op *Op[In, Out]) ReturnsBytes(status int, mediaType string) *Op[In, Out] {
	op.returns = append(op.returns, Answer{Status: status, MediaType: mediaType})
	return op
}

// Example adds a body to the document that shows how a request looks. It panics when
// the operation has no body in JSON.
func (op *Op[In, Out]) Example(name string, body any) *Op[In, Out] {
	if op.plan.body == nil || op.plan.body.raw {
		panic(fmt.Sprintf("typed: Example(%q): %s takes no JSON", name, op.label()))
	}
	op.examples = append(op.examples, Example{name, body})
	return op
}

// Route returns the route, for settings of its own: Timeout, MaxBody, Limit.
func (op *Op[In, Out]) Route() *dunlin.Route { return op.route }

// label names the operation in messages.
func (o *Operation) label() string {
	info := o.route.Info()
	if info.Name != "" {
		return info.Name
	}
	return info.Methods + " " + info.Pattern
}

// A Description is what a document says of an operation.
type Description struct {
	Route              dunlin.RouteInfo
	Summary, Text      string
	Tags               []string
	Deprecated, Hidden bool
	Params             []*Param
	Body               *Body // nil for none
	Answers            []Answer
	Security           []Requirement
	Examples           []Example
	InvalidStatus      int
	IgnoresReadOnly    bool // Config.IgnoreReadOnly
	IgnoresUnknown     bool // Config.UnknownMembers is Ignore
}

// A Body is what a request's body is.
type Body struct {
	Required   bool
	MediaTypes []string
	Schema     Schema   // of JSON; zero for anything
	Fields     []*Param // of a form
}

// Describe returns what a document says of the operation.
func (o *Operation) Describe() Description {
	d := Description{
		Route: o.route.Info(), Summary: o.summary, Text: o.description, Tags: slices.Clone(o.tags),
		Deprecated: o.deprecated, Hidden: o.hidden, Params: o.plan.params, Answers: o.Answers(),
		Security: slices.Clone(o.security), Examples: slices.Clone(o.examples), InvalidStatus: o.state.config.InvalidStatus,
		IgnoresReadOnly: o.state.config.IgnoreReadOnly, IgnoresUnknown: o.state.config.UnknownMembers == Ignore,
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

// SchemaAs describes the JSON of T, whose own methods such as MarshalJSON or MarshalText read and write
// it, by the type As and a tag: requests are checked by the rules of both before T reads them, and
// documents show them. Types of other packages are described like one's own:
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
// A type with MarshalText is a string, and As must be one. Fields of a described type take the rules of
// As in their tags, and the tag example. SchemaAs is for init functions: it panics when an operation with
// T is registered already, when T has a description, and when it has no methods of its own.
func SchemaAs[T, As any](tag reflect.StructTag) {
	t, as := reflect.TypeFor[T](), reflect.TypeFor[As]()
	if err := schema.Describe(t, as, tag); err != nil {
		panic(fmt.Sprintf("typed: SchemaAs[%s, %s]: %v", schema.TypeText(t), schema.TypeText(as), err))
	}
}

// Format makes a format known, for the rule format of types that are registered from now on:
// what a value of it is called ("an IBAN"), and whether a text is one. It panics when
// the name is taken.
func Format(name, what string, check func(string) bool) {
	if name == "" || what == "" || check == nil || !schema.AddFormat(name, what, check) {
		panic(fmt.Sprintf("typed: Format(%q): it needs a name that is not taken, what it is called and a function", name))
	}
}
