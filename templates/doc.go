// Package templates makes components of the templates of html/template, for [dunlin.Render] and
// package datastar:
//
//	var pages = template.Must(template.ParseFS(files, "*.html"))
//
//	func show(r *dunlin.Request) dunlin.Response {
//		return dunlin.Render(r, templates.Component(pages, "user.html", user))
//	}
package templates

import (
	"context"
	"html/template"
	"io"

	"github.com/dunlinhttp/dunlin"
)

// Component returns the component that executes a template with data. name is the name of an
// associated template; "" executes t itself.
func Component(t *template.Template, name string, data any) dunlin.Component {
	return &component{t, name, data}
}

type component struct {
	template *template.Template
	name     string
	data     any
}

func (c *component) Render(_ context.Context, w io.Writer) error {
	if c.name == "" {
		return c.template.Execute(w, c.data)
	}
	return c.template.ExecuteTemplate(w, c.name, c.data)
}
