package typed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/router"
)

// A message is a request that a plan has encoded from an input, for clients and tests. A binder
// decodes such a request.
type message struct {
	host, path string
	query      url.Values
	comma      []string // pairs name=value of comma-separated lists, with escapes
	header     http.Header
	body       []byte
}

// encode encodes an input as a request for a host and a path, which are given as patterns. params
// describes the parameters of both patterns.
func (p *plan) encode(v reflect.Value, host, pattern string, params []router.Param) (*message, error) {
	m := &message{host: schema.Template(host), path: schema.Template(pattern), query: url.Values{}, header: http.Header{}}
	for _, q := range p.params {
		if err := m.param(q, v.FieldByIndex(q.index), params); err != nil {
			return nil, fmt.Errorf("field %s: %w", q.field, err)
		}
	}
	var err error
	switch {
	case p.body != nil:
		err = m.json(p.body, v.FieldByIndex(p.body.index))
	case p.form != nil:
		err = m.form(p.form, v)
	}
	return m, err
}

// param adds one parameter to the message.
func (m *message) param(q *Param, v reflect.Value, params []router.Param) error {
	texts, err := q.texts(v)
	if err != nil {
		return err
	}
	switch q.from {
	case fromPath:
		i := slices.IndexFunc(params, func(r router.Param) bool { return r.Name == q.Name })
		if len(texts) != 1 || i < 0 {
			return errors.New("a path parameter has one value")
		}
		m.pathParam(q.Name, texts[0], params[i])
	case fromQuery:
		if q.Comma && len(texts) > 0 {
			for i := range texts {
				texts[i] = url.QueryEscape(texts[i])
			}
			m.comma = append(m.comma, url.QueryEscape(q.Name)+"="+strings.Join(texts, ","))
			return nil
		}
		m.query[q.Name] = texts
	case fromHeader:
		if len(texts) > 0 {
			m.header.Set(q.Name, strings.Join(texts, ", "))
		}
	case fromCookie:
		if len(texts) > 0 {
			if pair := (&http.Cookie{Name: q.Name, Value: texts[0]}).String(); pair != "" {
				m.header.Set("Cookie", strings.TrimPrefix(m.header.Get("Cookie")+"; "+pair, "; "))
			}
		}
	}
	return nil
}

// pathParam replaces a parameter in the path or host by its value.
func (m *message) pathParam(name, text string, p router.Param) {
	at := "{" + name + "}"
	if p.InHost {
		m.host = strings.Replace(m.host, at, text, 1)
		return
	}
	segments := []string{text}
	if p.Rest {
		segments = strings.Split(text, "/")
	}
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	m.path = strings.Replace(m.path, at, strings.Join(segments, "/"), 1)
}

// texts returns the values of a field as text. The result is empty if the field is absent.
func (p *Param) texts(v reflect.Value) ([]string, error) {
	if w, ok := schema.WrappedBy(v.Type()); ok && w.Optional {
		if !v.FieldByName("Set").Bool() {
			return nil, nil
		}
		v = v.FieldByName("Value")
	} else if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		v = v.Elem()
	}
	if !p.List {
		text, err := textOf(v)
		return []string{text}, err
	}
	var list []string
	for i := range v.Len() {
		text, err := textOf(v.Index(i))
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// json sets the body to the JSON of the field Body.
func (m *message) json(p *bodyPlan, v reflect.Value) error {
	if w, ok := schema.WrappedBy(p.typ); ok && w.Optional {
		if !v.FieldByName("Set").Bool() {
			return nil
		}
		v = v.FieldByName("Value")
	}
	if v.Kind() == reflect.Pointer && p.optional {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if p.parts {
		return errors.New("a form with a field of type Parts cannot be encoded from a value: send it with net/http")
	}
	kind := mediaJSON
	if p.raw {
		m.body = v.Bytes()
		if kind = p.media; kind == "" {
			kind = "application/octet-stream"
		}
	} else {
		var err error
		if m.body, err = jsonwire.AppendValue(nil, v.Interface(), jsonwire.Options{NilAsEmpty: true, View: jsonwire.Requests}); err != nil {
			return fmt.Errorf("field Body: %w", err)
		}
	}
	m.header.Set("Content-Type", kind)
	return nil
}

// form sets the body to the form: multipart/form-data if the form has files, and otherwise
// urlencoded.
func (m *message) form(f *formPlan, v reflect.Value) error {
	values := url.Values{}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, p := range f.fields {
		field := v.FieldByIndex(p.index)
		if p.File {
			for _, file := range filesOf(field) {
				if err := writeFile(w, p.Name, file); err != nil {
					return err
				}
			}
			continue
		}
		texts, err := p.texts(field)
		if err != nil {
			return fmt.Errorf("field %s: %w", p.field, err)
		}
		values[p.Name] = texts
		for _, text := range texts {
			if err := w.WriteField(p.Name, text); err != nil {
				return err
			}
		}
	}
	if !f.files {
		m.body = []byte(values.Encode())
		m.header.Set("Content-Type", mediaURLEncoded)
		return nil
	}
	if err := w.Close(); err != nil {
		return err
	}
	m.body = buf.Bytes()
	m.header.Set("Content-Type", w.FormDataContentType())
	return nil
}

// filesOf returns the files in a field. It returns the file of a required field even if the file is
// empty.
func filesOf(v reflect.Value) []File {
	switch f := v.Interface().(type) {
	case File:
		return []File{f}
	case []File:
		return f
	case *File:
		if f != nil {
			return []File{*f}
		}
	case Optional[File]:
		if f.Set {
			return []File{f.Value}
		}
	case Optional[[]File]:
		return f.Value
	}
	return nil
}

func writeFile(w *multipart.Writer, name string, f File) error {
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition(name, f.Name))
	kind := f.ContentType
	if kind == "" {
		kind = "application/octet-stream"
	}
	header.Set("Content-Type", kind)
	part, err := w.CreatePart(header)
	if err == nil {
		_, err = part.Write(f.Data)
	}
	return err
}

// target returns the path and the query.
func (m *message) target() string {
	query := m.query.Encode()
	for _, pair := range m.comma {
		if query != "" {
			query += "&"
		}
		query += pair
	}
	if query == "" {
		return m.path
	}
	return m.path + "?" + query
}

// request returns the request for a server. base is its URL, such as "https://example.com".
func (m *message) request(method, base string) (*http.Request, error) {
	var body io.Reader
	if m.body != nil {
		body = bytes.NewReader(m.body)
	}
	r, err := http.NewRequest(method, strings.TrimSuffix(base, "/")+m.target(), body)
	if err != nil {
		return nil, err
	}
	r.Header = m.header
	return r, nil
}
