package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// A result is a compiled output type. It converts an output to a response, decodes a response for
// clients, and lists the answers for the document.
type result struct {
	answers []Answer
	// bodies are the types of the values that can be sent in other formats than JSON. bodies is empty
	// if the output is a stream or a dunlin.Response.
	bodies []reflect.Type
	// respond returns the response for the output at an address. f is the format, or nil for JSON.
	// respond does not retain the address.
	respond func(from address, f *negotiate.Format) dunlin.Response
	// faults are errors that every action with this output type may return. The operation need not
	// declare them.
	faults []*Fault
	// next returns the cursor of the next page. It is nil if the output is not a Page.
	next func(from address) string
	// receive decodes an answer that has one of the statuses of answers into the output at an
	// address. It is nil if clients must read the answer themselves.
	receive func(a *received, to address) error
}

// An Answer describes the answer of an operation for one status.
type Answer struct {
	Status      int
	Description string
	MediaType   string   // empty if the answer has no body
	Schema      Schema   // schema of the body; for a sequence, schema of the whole array; zero for any body
	Formats     []string // other media types in which the body can be sent, because of Config.Formats
	Item        Schema   // for a sequence: schema of one element
	Headers     []AnswerHeader
	Faults      []*Fault // faults with this status
	Problem     bool     // the body is a problem
	Invalid     bool     // the answer to an invalid request
	Other       bool     // problems that are not in Faults may also have this status
}

// An AnswerHeader describes a header of an answer.
type AnswerHeader struct {
	Name   string
	Schema Schema
	Always bool // the answer always has the header
}

// received is a response whose body a client has read completely.
type received struct {
	status int
	header http.Header
	body   []byte
}

// A resulter is an output type of this package. It has a method that compiles it, because only a
// method of the generic type knows the type arguments.
type resulter interface{ result() (*result, error) }

// resultFor compiles an output type.
func resultFor[T any]() (*result, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Interface {
		var zero T
		if r, ok := any(zero).(resulter); ok {
			return r.result()
		}
	}
	switch {
	case t == reflect.TypeFor[dunlin.Response]():
		return &result{respond: func(from address, _ *negotiate.Format) dunlin.Response { return load[dunlin.Response](from) }}, nil
	case isSeq2(t):
		return reflectedSeq(t)
	case hasHeaders(t):
		return headerResult(t)
	}
	node, err := outputNode(t)
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaJSON, Schema: Schema{node}}},
		bodies:  []reflect.Type{t},
		respond: func(from address, f *negotiate.Format) dunlin.Response {
			if f != nil {
				return f.Response(load[T](from))
			}
			return dunlin.JSON(load[T](from), dunlin.JSONNilAsEmpty, dunlin.JSONOmitWriteOnly)
		},
		receive: func(a *received, to address) error { return json.Unmarshal(a.body, pointer[T](to)) },
	}, nil
}

const mediaJSON = "application/json"

// outputNode returns the schema of an output type.
func outputNode(t reflect.Type) (*schema.Node, error) { return schema.Of(t) }

// hasHeaders reports whether t is a struct with fields that are sent as headers.
func hasHeaders(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if _, ok := t.Field(i).Tag.Lookup("header"); ok {
			return true
		}
	}
	return false
}

// A headerField is a field of the output that is sent as a header.
type headerField struct {
	name  string
	index int
	omit  bool // the header is omitted if the field is zero
}

// headerResult compiles a struct with fields that are sent as headers. The field Body is the body of
// the answer:
//
//	type Page struct {
//		Total int    `header:"X-Total-Count"`
//		Next  string `header:"Link,omitzero"`
//		Body  []User
//	}
//
// If the struct has no field Body, the answer is 204.
func headerResult(t reflect.Type) (*result, error) {
	var fields []headerField
	body := -1
	answer := Answer{Status: http.StatusNoContent}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, isHeader := f.Tag.Lookup("header")
		switch {
		case isHeader:
			header, err := outputHeader(f, tag)
			if err != nil {
				return nil, fmt.Errorf("field %s of %s: %w", f.Name, t, err)
			}
			fields = append(fields, headerField{header.Name, i, !header.Always})
			answer.Headers = append(answer.Headers, header)
		case f.Name == "Body":
			node, err := outputNode(f.Type)
			if err != nil {
				return nil, fmt.Errorf("field Body of %s: %w", t, err)
			}
			body, answer.Status, answer.MediaType, answer.Schema = i, http.StatusOK, mediaJSON, Schema{node}
		default:
			return nil, fmt.Errorf("field %s of %s: an output may have only headers and the field Body", f.Name, t)
		}
	}
	var bodies []reflect.Type
	if body >= 0 {
		bodies = append(bodies, t.Field(body).Type)
	}
	return &result{
		answers: []Answer{answer},
		bodies:  bodies,
		respond: func(from address, f *negotiate.Format) dunlin.Response {
			v := from.value(t)
			resp := dunlin.NoContent()
			switch {
			case body >= 0 && f != nil:
				resp = f.Response(v.Field(body).Interface())
			case body >= 0:
				resp = dunlin.JSON(v.Field(body).Interface(), dunlin.JSONNilAsEmpty, dunlin.JSONOmitWriteOnly)
			}
			for _, f := range fields {
				if field := v.Field(f.index); !f.omit || !field.IsZero() {
					resp = resp.Header(f.name, headerText(field))
				}
			}
			return resp
		},
		receive: func(a *received, to address) error {
			v := to.value(t)
			for _, f := range fields {
				text := a.header.Get(f.name)
				if text == "" {
					continue
				}
				set, err := shapeOf(v.Field(f.index).Type())
				if err != nil || !set.set(addressIn(v.Field(f.index).Addr()), text) {
					return fmt.Errorf("header %s cannot be parsed", f.name)
				}
			}
			if body < 0 {
				return nil
			}
			return json.Unmarshal(a.body, v.Field(body).Addr().Interface())
		},
	}, nil
}

// outputHeader returns the description of the header for a field with the given tag.
func outputHeader(f reflect.StructField, tag string) (AnswerHeader, error) {
	name, option, _ := strings.Cut(tag, ",")
	if name == "" || !f.IsExported() || option != "" && option != "omitzero" {
		return AnswerHeader{}, errors.New("a header field is exported and has the tag `header:\"Name\"` or `header:\"Name,omitzero\"`")
	}
	if !headerKind(f.Type) {
		return AnswerHeader{}, fmt.Errorf("a header is one value, and cannot be of type %s; with the tag `header:\"%s,omitzero\"` it is left out when it is zero", f.Type, name)
	}
	node, err := schema.Of(f.Type)
	if err != nil {
		return AnswerHeader{}, err
	}
	return AnswerHeader{Name: name, Schema: Schema{node}, Always: option == ""}, nil
}

// headerKind reports whether a value of type t can be sent as a header.
func headerKind(t reflect.Type) bool {
	_, err := shapeOf(t)
	return err == nil
}

// headerText returns the text of a header's value.
func headerText(v reflect.Value) string {
	text, err := textOf(v)
	if err != nil {
		return "\n" // this is not a valid header value, so the response becomes a 500 with the reason
	}
	return text
}

// withStatus returns the answer of r with another status, for results that wrap other results.
func (r *result) withStatus(status int) ([]Answer, error) {
	if len(r.answers) != 1 {
		return nil, errors.New("it must hold a plain value")
	}
	a := r.answers[0]
	a.Status = status
	return []Answer{a}, nil
}
