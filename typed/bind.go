package typed

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A binder reads one request into one input. It is pooled together with that input.
type binder struct {
	r      *dunlin.Request
	report schema.Report
	state  *appState
	err    error // error of reading the body; it takes precedence over the report

	fileStatus int // 413 if a file is too large, otherwise 415 if a file has a wrong type, otherwise 0
}

// wrong adds the violation of a rule by a parameter to the report.
func (b *binder) wrong(p *Param, pointer, rule, limit string) {
	b.report.Add(schema.Violation{In: p.In, Name: p.Name, Pointer: pointer, Rule: rule, Limit: limit})
}

// bind fills the input from the request. The argument in is the address of the input. The error is
// a problem, the error of the request's context, or an *Invalid with all violations.
func (b *binder) bind(p *plan, in address) error {
	for _, q := range p.path {
		q.setOne(b, in, b.r.Param(q.Name))
	}
	if len(p.query) > 0 {
		b.bindQuery(p, in)
	}
	for _, q := range p.other {
		b.bindOther(q, in)
	}
	switch {
	case p.body != nil:
		b.bindBody(p.body, in)
	case p.form != nil:
		b.bindForm(p.form, in)
	}
	if b.err != nil {
		return b.err
	}
	if p.checks != nil && b.report.OK() {
		b.report.Request = b.r
		p.checks.run(&b.report, in.value(p.typ))
		if b.report.Request = nil; b.report.Ended {
			return b.r.Context().Err()
		}
	}
	if !b.report.OK() {
		return b.invalid()
	}
	return nil
}

// bindOther reads a header or a cookie into the struct field of the parameter q.
func (b *binder) bindOther(q *Param, in address) {
	text := ""
	switch {
	case q.from == fromCookie:
		text = b.r.Cookie(q.Name)
	case q.List:
		b.bindHeaderList(q, in)
		return
	default:
		text = b.r.Header(q.Name)
	}
	if text == "" {
		q.absent(b, in)
		return
	}
	q.setOne(b, in, text)
}

// bindHeaderList reads a list from all header fields with the same name.
func (b *binder) bindHeaderList(q *Param, in address) {
	var texts []string
	name := http.CanonicalHeaderKey(q.Name)
	for n, text := range b.r.Headers() {
		if n == name || strings.EqualFold(n, name) {
			texts = append(texts, splitComma(text)...)
		}
	}
	if len(texts) == 0 {
		q.absent(b, in)
		return
	}
	q.setList(b, in, texts)
}
