package dunlin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

const (
	typeURLEncoded = "application/x-www-form-urlencoded"
	typeMultipart  = "multipart/form-data"
)

// Form returns the fields of a form in the request body, urlencoded or as multipart/form-data without files. It does
// not include query parameters. It reads the whole body on the first call; later calls return the same map. Errors are
// problems: 415 for another media type or a form with files (see [Request.Parts]), 413 for more fields than
// Config.Limits.MaxFormFields, 400 for a malformed form, and those of [Request.Bytes].
func (r *Request) Form() (url.Values, error) {
	if f, ok := formKey.Get(r); ok {
		return f.values, f.err
	}
	f := new(parsedForm)
	f.values, f.err = r.parseForm()
	formKey.Set(r, f)
	return f.values, f.err
}

// FormValue returns the first value of the named field of [Request.Form], or "" if there is none.
func (r *Request) FormValue(name string) (string, error) {
	values, err := r.Form()
	return values.Get(name), err
}

// parsedForm is the cached result of Form.
type parsedForm struct {
	values url.Values
	err    error
}

var formKey = NewKey[*parsedForm]("form")

func (r *Request) parseForm() (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header("Content-Type"))
	if kind == typeMultipart {
		return r.parseMultipart()
	}
	if kind != typeURLEncoded || err != nil {
		return nil, unsupportedForm("the body must be " + typeURLEncoded + " or " + typeMultipart)
	}
	body, err := r.bytes(r.maxBody())
	if err != nil {
		return nil, err
	}
	if most := r.app.config.Limits.MaxFormFields; bytes.Count(body, []byte("&")) >= most {
		return nil, tooManyFields(most)
	}
	if n := 2 * len(body); n > trustedBody { // a copy of the text, and of fields with escapes
		if err := r.ReserveMemory(int64(n)); err != nil {
			return nil, err
		}
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("the form is malformed", err)
	}
	return values, nil
}

func (r *Request) parseMultipart() (url.Values, error) {
	values := make(url.Values)
	for part, err := range r.Parts() {
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return nil, unsupportedForm("the form must not contain files")
		}
		value, err := r.readField(part)
		if err != nil {
			return nil, r.bodyEnded(err)
		}
		values.Add(part.FormName(), string(value))
	}
	_ = r.bodyEnded(io.EOF) // the body has been read
	return values, nil
}

// readField reads one field of a form and charges its memory like that of the body.
func (r *Request) readField(part io.Reader) ([]byte, error) {
	const piece = 512
	var value []byte
	held := int(r.bodyHeld) // by earlier fields
	for {
		if len(value) == cap(value) {
			grown := max(piece, 2*cap(value))
			if err := r.holdBody(held+grown, -1); err != nil {
				return nil, err
			}
			value = append(make([]byte, 0, grown), value...)
		}
		n, err := part.Read(value[len(value):cap(value)])
		value = value[:len(value)+n]
		r.noteBody(n, -1)
		switch err {
		case nil:
		case io.EOF:
			return value, nil
		default:
			return nil, err
		}
	}
}

func unsupportedForm(detail string) error {
	return &ProblemDetails{Status: http.StatusUnsupportedMediaType, Detail: detail}
}

// Multipart returns a reader of a multipart/form-data body. It reads from the client as the parts are read, with memory
// for one part's header and a buffer. The error for another media type is a 415 problem. The errors of the reader wrap the
// problems of [Request.Body]; other errors of the reader report a malformed body. A caller of Multipart must limit the
// number of parts, unless it calls ReadForm, which reads at most 1,000. [Request.Parts] limits the number of parts, and
// its errors are problems.
func (r *Request) Multipart() (*multipart.Reader, error) {
	kind, params, err := mime.ParseMediaType(r.Header("Content-Type"))
	switch {
	case kind != typeMultipart || err != nil && params == nil:
		return nil, unsupportedForm("the body must be " + typeMultipart)
	case params["boundary"] == "":
		return nil, badRequest("the multipart body has no boundary", err)
	}
	if err := r.announced(r.maxBody()); err != nil {
		return nil, err
	}
	return multipart.NewReader(r.Body(), params["boundary"]), nil
}

// A Part is one field or file of a multipart body.
type Part struct{ *multipart.Part }

// Read reads the content of the part. It returns a 400 problem for a malformed body.
func (p *Part) Read(b []byte) (int, error) {
	n, err := p.Part.Read(b)
	return n, multipartError(err)
}

// Parts yields the fields and files of a multipart/form-data body in order, as they arrive. The client waits while the
// loop body runs. A part is valid until the next one is yielded; its unread content is skipped. An error ends the
// sequence. Errors are the problems of [Request.Form], including 413 for more than Config.Limits.MaxFormFields parts.
func (r *Request) Parts() iter.Seq2[*Part, error] {
	return func(yield func(*Part, error) bool) {
		reader, err := r.Multipart()
		if err != nil {
			yield(nil, err)
			return
		}
		most := r.app.config.Limits.MaxFormFields
		for parts, headers := 1, 0; ; parts++ {
			part, err := reader.NextPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, multipartError(err))
				return
			}
			for _, lines := range part.Header {
				headers += len(lines)
			}
			if parts > most || headers > headersPerPart*most {
				yield(nil, tooManyFields(most))
				return
			}
			if !yield(&Part{part}, nil) {
				return
			}
		}
	}
}

// headersPerPart times MaxFormFields is the maximum number of headers of all parts together.
// mime/multipart limits the headers of one part to 10,000.
const headersPerPart = 10

// tooManyFields returns the problem of a form with more fields than its limit.
func tooManyFields(limit int) error {
	return &ProblemDetails{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the form has more fields than the limit of %d", limit),
	}
}

// multipartError returns the problem of a malformed multipart body. It returns a problem unchanged.
func multipartError(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if problem, ok := errors.AsType[*ProblemDetails](err); ok {
		return problem
	}
	return badRequest("the multipart body is malformed", exchange.TooEarly(err))
}
