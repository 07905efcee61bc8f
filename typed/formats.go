package typed

import (
	"encoding"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// negotiator returns a negotiator for JSON and those of the given formats that can encode the
// result. It returns nil if the result can only be sent as JSON.
func (r *result) negotiator(formats []*negotiate.Format) *negotiate.Negotiator {
	all := []*negotiate.Format{negotiate.JSON}
	for _, f := range formats {
		if slices.ContainsFunc(r.bodies, func(t reflect.Type) bool { return !encodes(f, t) }) {
			continue
		}
		all = append(all, f)
	}
	if len(r.bodies) == 0 || len(all) == 1 {
		return nil
	}
	return negotiate.New(all...)
}

// encodes reports whether a format can encode values of type t with the same members as JSON.
func encodes(f *negotiate.Format, t reflect.Type) bool {
	return (f.Encodes == nil || f.Encodes(t)) && !onlyJSON(t, map[reflect.Type]bool{})
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// onlyJSON reports whether a part of type t is encoded as intended only in JSON. seen has the types
// whose check has begun.
func onlyJSON(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if _, wrapper := schema.WrappedBy(t); wrapper {
		return true
	}
	switch p := reflect.PointerTo(t); {
	case p.Implements(textMarshaler):
		return false
	case p.Implements(jsonMarshaler):
		return true
	}
	switch t.Kind() {
	case reflect.Interface:
		return true // the value may have write-only members
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return onlyJSON(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("writeOnly") == "true" || f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous) && onlyJSON(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// isPlain reports whether an answer depends only on the output, and not on the request.
func (o *Operation) isPlain() bool { return o.formats == nil && o.result.next == nil }

// acceptable returns the error for a request that accepts none of the operation's formats.
func (o *Operation) acceptable(r *dunlin.Request) error {
	if o.formats != nil && o.formats.Choose(r) == nil {
		return &notAcceptable{o.formats}
	}
	return nil
}

// notAcceptable is the error of a request that accepts none of the formats.
type notAcceptable struct{ formats *negotiate.Negotiator }

func (e *notAcceptable) Error() string             { return "the request accepts none of the formats" }
func (e *notAcceptable) StatusCode() int           { return 406 }
func (e *notAcceptable) Response() dunlin.Response { return e.formats.NotAcceptable() }

// respond returns the response for the output at an address, in the format that the request
// prefers. If the output is a Page, the response has a link to the next page.
func (o *Operation) respond(r *dunlin.Request, from address) dunlin.Response {
	cursor := ""
	if o.result.next != nil {
		cursor = o.result.next(from)
	}
	var f *negotiate.Format
	if o.formats != nil {
		if f = o.formats.Choose(r); f == negotiate.JSON {
			f = nil
		}
	}
	resp := o.result.respond(from, f)
	if o.formats != nil {
		resp = negotiate.Vary(resp)
	}
	if cursor != "" {
		resp = resp.AddHeader("Link", "<"+nextPage(r.RawQuery(), cursor)+`>; rel="next"`)
	}
	return resp
}

// nextPage returns the reference to the next page, relative to the request: the query with another
// cursor.
func nextPage(query, cursor string) string {
	values, _ := url.ParseQuery(query) // a malformed pair has had no effect on this page
	values.Set(cursorParam, cursor)
	return "?" + values.Encode()
}

// formatNames returns the media types of the operation's formats, without JSON.
func (o *Operation) formatNames() []string {
	if o.formats == nil {
		return nil
	}
	return o.formats.MediaTypes()[1:]
}
