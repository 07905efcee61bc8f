package typed

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A File is a file of a form. Data is a copy of bytes of the request body; [Parts] reads large files
// without a copy. The rules minLength and maxLength limit the size in bytes. A file that is too large is
// answered with 413, and a file whose type is not accepted with 415. The tag contentType lists the
// accepted types: `contentType:"image/png, image/jpeg"`, or `contentType:"image/*"`. Both the type that
// the client declares and the type that [http.DetectContentType] finds in Data must be accepted. If
// DetectContentType cannot detect a type, such as text/csv or image/svg+xml, the tag must list the type
// by its name. For such a type the declaration of the client is sufficient, unless Data is HTML, a PDF
// or an image of a known type.
type File struct {
	Name        string // name that the client gave, without folders and control characters
	ContentType string // type that the client declared, or empty
	Data        []byte
}

// Parts is the type of a field Body for a form that the action reads while it arrives. It handles files
// of any size with the memory of one buffer. The names and the contents of the parts are not checked.
type Parts struct{ r *dunlin.Request }

// All yields the fields and files of the form. See [dunlin.Request.Parts] for errors and for how long
// the parts are valid.
func (p Parts) All() iter.Seq2[*dunlin.Part, error] { return p.r.Parts() }

const (
	mediaURLEncoded = "application/x-www-form-urlencoded"
	mediaMultipart  = "multipart/form-data"
)

var fileType, partsType = reflect.TypeFor[File](), reflect.TypeFor[Parts]()

// fileOf reports whether t is the type of a file or of a list of files, and sets the fields of p
// accordingly.
func fileOf(p *Param, t reflect.Type) bool {
	switch {
	case t == fileType:
		p.File = true
	case t.Kind() == reflect.Slice && t.Elem() == fileType:
		p.File, p.List, p.elem = true, true, fileType
	}
	return p.File
}

// fileNode returns the schema of a file, or of a list of files, without the rules of its tags.
func fileNode(list bool) *schema.Node {
	n := &schema.Node{Kind: schema.String, Type: reflect.TypeFor[string]()}
	n.Rules.Format = "binary"
	if list {
		return &schema.Node{Kind: schema.Array, Type: reflect.TypeFor[[]string](), Elem: n}
	}
	return n
}

// A formPlan describes how to read a form into the fields of an input.
type formPlan struct {
	fields []*Param
	files  bool // the form has files, so it must be multipart
}

func (f *formPlan) add(p *Param) {
	f.fields = append(f.fields, p)
	f.files = f.files || p.File
}

// mediaTypes lists the media types that the form accepts.
func (f *formPlan) mediaTypes() []string {
	if f.files {
		return []string{mediaMultipart}
	}
	return []string{mediaURLEncoded, mediaMultipart}
}

// required reports whether the form has a required field.
func (f *formPlan) required() bool {
	return slices.ContainsFunc(f.fields, func(p *Param) bool { return p.Required })
}

// formValues has the texts and files of a form, by the index of the field in formPlan.fields.
type formValues struct {
	texts [][]string
	files [][]File
}

// bindForm reads the form into the fields of the input.
func (b *binder) bindForm(f *formPlan, in address) {
	values := formValues{texts: make([][]string, len(f.fields)), files: make([][]File, len(f.fields))}
	header := b.r.Header("Content-Type")
	kind, params, _ := mime.ParseMediaType(header)
	switch {
	case header == "" && b.r.ContentLength() == 0: // the request has no form, so all fields are absent
	case kind == mediaURLEncoded && !f.files:
		body, err := b.r.Bytes()
		if err != nil {
			b.err = err
			return
		}
		if bytes.Count(body, []byte("&")) >= b.state.formFields {
			b.err = tooManyFields(b.state.formFields)
			return
		}
		if !b.copies(2 * len(body)) { // memory for the text, and for fields with escapes
			return
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "syntax", Message: "is not a well-formed form"})
			return
		}
		for i, p := range f.fields {
			values.texts[i] = form[p.Name]
		}
	case kind == mediaMultipart:
		body, err := b.r.Bytes()
		if err == nil && !b.copies(len(body)) {
			return
		}
		if err == nil {
			err = values.multipart(f, body, params["boundary"], b.state.formFields)
		} else {
			b.err = err
			return
		}
		switch {
		case err == errManyParts:
			b.err = tooManyFields(b.state.formFields)
			return
		case err != nil:
			b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "syntax", Message: "is not a well-formed form: " + err.Error()})
			return
		}
	default:
		b.err = unsupported(f.mediaTypes())
		return
	}
	for i, p := range f.fields {
		b.bindFormField(p, in, values.texts[i], values.files[i])
	}
}

// tooManyFields returns the problem for a form that has more fields than
// dunlin.Config.Limits.MaxFormFields.
func tooManyFields(most int) error {
	return &dunlin.ProblemDetails{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the form has more fields than the limit of %d", most),
	}
}

func (b *binder) bindFormField(p *Param, in address, texts []string, files []File) {
	switch {
	case p.File && len(texts) > 0:
		b.wrong(p, "", "type", "file")
	case !p.File && len(files) > 0:
		b.wrong(p, "", "type", "text field")
	case p.File && len(files) > 0:
		b.bindFiles(p, in, files)
	case p.List && len(texts) > 0:
		p.setList(b, in, texts)
	case len(texts) > 1:
		b.wrong(p, "", "single", "")
	case len(texts) == 1:
		p.setOne(b, in, texts[0])
	default:
		p.absent(b, in)
	}
}

// bindFiles checks the files of a field and stores them.
func (b *binder) bindFiles(p *Param, in address, files []File) {
	if !p.List && len(files) > 1 {
		b.wrong(p, "", "single", "")
		return
	}
	if p.List {
		p.Schema.node.Count(len(files), p.In, p.Name, &b.report)
	}
	one := p.one()
	for i := range files {
		pointer := ""
		if p.List {
			pointer = elementPointer(i)
		}
		size, r := len(files[i].Data), &one.Rules
		if r.MinLength.Set && size < r.MinLength.N {
			b.wrongSize(p, pointer, "minLength", "must have at least ", r.MinLength.N)
		}
		if r.MaxLength.Set && size > r.MaxLength.N {
			b.fileStatus = http.StatusRequestEntityTooLarge
			b.wrongSize(p, pointer, "maxLength", "must have at most ", r.MaxLength.N)
		}
		b.checkType(p, pointer, &files[i])
	}
	if !b.report.OK() {
		return
	}
	for i := range files {
		files[i].Data = bytes.Clone(files[i].Data) // Data is borrowed from the request body
	}
	to := in.at(p.offset)
	w, optional := schema.WrappedBy(p.typ)
	switch {
	case p.List && optional:
		store(to, Optional[[]File]{Value: files, Set: true})
	case p.List:
		store(to, files)
	case optional && w.Elem == fileType:
		store(to, Optional[File]{Value: files[0], Set: true})
	case p.typ.Kind() == reflect.Pointer:
		store(to.alloc(fileType), files[0])
	default:
		store(to, files[0])
	}
}

// checkType checks the declared type and the content of a file.
func (b *binder) checkType(p *Param, pointer string, f *File) {
	if p.types == nil {
		return
	}
	declared, allowed := mediaType(f.ContentType), p.Schema.node.Meta.ContentType
	switch {
	case !anyCovers(p.types, declared):
		b.wrong(p, pointer, "contentMediaType", allowed)
	case acceptsContent(p.types, declared, f.Data):
		return
	default:
		b.report.Add(schema.Violation{In: p.In, Name: p.Name, Pointer: pointer, Rule: "contentMediaType", Limit: allowed,
			Message: "must have content of the type " + strings.Join(p.types, " or ")})
	}
	b.fileStatus = cmp.Or(b.fileStatus, http.StatusUnsupportedMediaType)
}

// wrongSize reports a violation of a limit on the size of a file, in bytes.
func (b *binder) wrongSize(p *Param, pointer, rule, must string, limit int) {
	n, unit := strconv.Itoa(limit), " bytes"
	if limit == 1 {
		unit = " byte"
	}
	b.report.Add(schema.Violation{In: p.In, Name: p.Name, Pointer: pointer, Rule: rule, Limit: n, Message: must + n + unit})
}

// multipart assigns the parts of a body to the fields of the form. limit is the maximum number of parts.
func (v *formValues) multipart(f *formPlan, body []byte, boundary string, limit int) error {
	for part, err := range parts(body, boundary, limit) {
		if err != nil {
			return err
		}
		i := slices.IndexFunc(f.fields, func(p *Param) bool { return p.Name == part.name })
		switch {
		case i < 0: // a field without a parameter is ignored, like an unknown query parameter
		case part.file:
			v.files[i] = append(v.files[i], File{Name: baseName(part.fileName), ContentType: part.contentType, Data: part.data})
		default:
			v.texts[i] = append(v.texts[i], string(part.data))
		}
	}
	return nil
}

// baseName returns the last element of a path that a client sent. Both / and \ are separators.
func baseName(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	if path == "." || path == ".." {
		return ""
	}
	return path
}
