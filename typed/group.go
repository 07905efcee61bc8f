package typed

import (
	"fmt"

	"github.com/dunlinhttp/dunlin"
)

// A Group sets defaults for the entries in the OpenAPI document of the operations that are
// registered on it. A Group is a [Router]. It wraps an App, a dunlin.Group or another Group. The
// defaults of an outer Group apply first:
//
//	articles := typed.NewGroup(app.Group("/articles", signedIn)).Tags("articles").Faults(NoArticle)
//	typed.Get(articles, "/{slug}", show).Name("showArticle")
//	typed.Delete(articles, "/{slug}", remove).Name("deleteArticle").Faults(NotTheAuthor)
//
// A default applies to operations that are registered after the default was set. Declarations of
// the operation itself are added to the defaults.
type Group struct {
	router   Router
	defaults []func(*Operation)
}

// NewGroup returns a group without defaults that registers on g.
func NewGroup(g Router) *Group {
	if g == nil {
		panic("typed: NewGroup: the router is nil")
	}
	return &Group{router: g}
}

// Handle registers an action on the router that the group wraps. The defaults do not apply to this
// action, because it is not typed.
func (g *Group) Handle(methods, pattern string, act dunlin.Action, middleware ...dunlin.Middleware) *dunlin.Route {
	return g.router.Handle(methods, pattern, act, middleware...)
}

// App returns the app that the group belongs to.
func (g *Group) App() *dunlin.App { return g.router.App() }

// Tags adds tags to the operations, see [Op.Tags].
func (g *Group) Tags(tags ...string) *Group {
	return g.with(func(o *Operation) { o.tags = append(o.tags, tags...) })
}

// Faults declares errors that each operation may return, see [Op.Faults].
func (g *Group) Faults(faults ...*Fault) *Group {
	for i, f := range faults {
		if f == nil {
			panic(fmt.Sprintf("typed: Faults: fault %d of a group is nil", i))
		}
	}
	return g.with(func(o *Operation) {
		for _, f := range faults {
			o.faults = append(o.faults, f.kind())
		}
	})
}

// Security declares requirements for the callers of the operations, see [Op.Security].
func (g *Group) Security(required ...Requirement) *Group {
	return g.with(func(o *Operation) { o.security = append(o.security, required...) })
}

// Returns declares an answer that each operation may give, see [Op.Returns].
func (g *Group) Returns(status int, body any) *Group {
	a, err := answerOf(status, body)
	if err != nil {
		panic(fmt.Sprintf("typed: Returns(%d) of a group: %v", status, err))
	}
	return g.with(func(o *Operation) { o.returns = append(o.returns, a) })
}

// ReturnsBytes declares an answer whose media type is not JSON, see [Op.ReturnsBytes].
func (g *Group) ReturnsBytes(status int, mediaType string) *Group {
	return g.with(func(o *Operation) { o.returns = append(o.returns, Answer{Status: status, MediaType: mediaType}) })
}

// Deprecated marks the operations as deprecated.
func (g *Group) Deprecated() *Group { return g.with(func(o *Operation) { o.deprecated = true }) }

// Hidden omits the operations from documents.
func (g *Group) Hidden() *Group { return g.with(func(o *Operation) { o.hidden = true }) }

func (g *Group) with(f func(*Operation)) *Group {
	g.defaults = append(g.defaults, f)
	return g
}

// setDefaults applies the defaults of r and of the groups that r wraps to an operation.
func setDefaults(r Router, o *Operation) {
	g, ok := r.(*Group)
	if !ok {
		return
	}
	setDefaults(g.router, o)
	for _, f := range g.defaults {
		f(o)
	}
}

// Find returns the operation of an app with a given name, such as "createArticle", or with given
// methods and a pattern, such as "POST /articles". Use it to test operations that other code has
// registered, together with their middleware, see [Op.Test]. Find panics if the app has no such
// operation, or if the types of the operation are not In and Out.
func Find[In, Out any](app *dunlin.App, name string) *Op[In, Out] {
	var found *Operation
	for _, o := range Operations(app) {
		if info := o.route.Info(); info.Name == name || info.Methods+" "+info.Pattern == name {
			if found != nil {
				panic(fmt.Sprintf("typed: Find(%q): the app has several such operations: give them names", name))
			}
			found = o
		}
	}
	if found == nil {
		panic(fmt.Sprintf("typed: Find(%q): the app has no typed operation of that name", name))
	}
	op, ok := found.op.(*Op[In, Out])
	if !ok {
		panic(fmt.Sprintf("typed: Find(%q): the operation is a %T, not a %T", name, found.op, op))
	}
	return op
}
