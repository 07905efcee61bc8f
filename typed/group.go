package typed

import (
	"fmt"

	"github.com/dunlinhttp/dunlin"
)

// A Group gives the operations that are registered on it what they have in common in the document. It
// is a [Router] around an App, a dunlin.Group or another Group, whose defaults come first:
//
//	articles := typed.NewGroup(app.Group("/articles", signedIn)).Tags("articles").Faults(NoArticle)
//	typed.Get(articles, "/{slug}", show).Name("showArticle")
//	typed.Delete(articles, "/{slug}", remove).Name("deleteArticle").Faults(NotTheAuthor)
//
// A default is for operations that are registered after it. What an operation says itself is added.
type Group struct {
	router   Router
	defaults []func(*Operation)
}

// NewGroup returns a group without defaults.
func NewGroup(g Router) *Group {
	if g == nil {
		panic("typed: NewGroup: the router is nil")
	}
	return &Group{router: g}
}

// Handle registers an action, as the App or the Group beneath does it. Defaults are for typed operations
// only.
func (g *Group) Handle(methods, pattern string, act dunlin.Action, middleware ...dunlin.Middleware) *dunlin.Route {
	return g.router.Handle(methods, pattern, act, middleware...)
}

// App returns the app that the group belongs to.
func (g *Group) App() *dunlin.App { return g.router.App() }

// Tags puts the operations under these tags in the document, see [Op.Tags].
func (g *Group) Tags(tags ...string) *Group {
	return g.with(func(o *Operation) { o.tags = append(o.tags, tags...) })
}

// Faults declares errors that each of the operations may return, see [Op.Faults].
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

// Security says what the callers of the operations must prove, see [Op.Security].
func (g *Group) Security(required ...Requirement) *Group {
	return g.with(func(o *Operation) { o.security = append(o.security, required...) })
}

// Returns declares an answer that each of the operations may give, see [Op.Returns].
func (g *Group) Returns(status int, body any) *Group {
	a, err := answerOf(status, body)
	if err != nil {
		panic(fmt.Sprintf("typed: Returns(%d) of a group: %v", status, err))
	}
	return g.with(func(o *Operation) { o.returns = append(o.returns, a) })
}

// Deprecated says that the operations should not be used any more.
func (g *Group) Deprecated() *Group { return g.with(func(o *Operation) { o.deprecated = true }) }

// Hidden leaves the operations out of documents.
func (g *Group) Hidden() *Group { return g.with(func(o *Operation) { o.hidden = true }) }

func (g *Group) with(f func(*Operation)) *Group {
	g.defaults = append(g.defaults, f)
	return g
}

// setDefaults gives an operation the defaults of the router that it is registered on.
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

// Find returns the operation of an app that is called by a name, or by its methods and its pattern:
// "createArticle", "POST /articles". It is for tests of operations that other code has registered, with
// the middleware that they have there, see [Op.Test]. Find panics when there is no such operation, or
// when it has other types than In and Out.
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
