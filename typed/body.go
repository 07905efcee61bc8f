package typed

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Raw is a body that is taken as it is, of whatever media type: the tag contentType
// (`contentType:"image/png"`, `contentType:"image/*"`) says which, and others are refused. The bytes are a copy. An
// action that needs none gets by without this field, with [dunlin.Request.Bytes].
type Raw []byte

// bodyPlan is how the field Body is read.
type bodyPlan struct {
	node     *schema.Node
	optional bool // the body may be absent
	raw      bool
	parts    bool   // it is a form that the action reads
	media    string // of a raw one; "" for any

	index   []int
	offset  uintptr
	typ     reflect.Type // of the field
	decoder bodyDecoder
}

var rawType = reflect.TypeFor[Raw]()

func newBodyPlan(f reflect.StructField, tags schema.Tags, i ignores) (*bodyPlan, error) {
	b := &bodyPlan{typ: f.Type}
	t := f.Type
	if w, ok := schema.WrappedBy(t); ok && w.Optional {
		b.optional, t = true, w.Elem
	} else if t.Kind() == reflect.Pointer {
		b.optional = true
	}
	if t == partsType && f.Type == partsType {
		b.parts, b.raw, b.media, b.node = true, true, mediaMultipart, &schema.Node{Kind: schema.Any}
		return b, nil
	}
	if t == rawType || t.Kind() == reflect.Pointer && t.Elem() == rawType {
		b.raw, b.media = true, mediaType(tags["contentType"])
		if _, given := tags["contentType"]; given && b.media == "" {
			return nil, fmt.Errorf("contentType:%q is no media type", tags["contentType"])
		}
		b.node = &schema.Node{Kind: schema.Any}
		return b, nil
	}
	node, err := schema.Of(t)
	if err != nil {
		return nil, err
	}
	if b.node, err = node.Tagged(tags); err != nil {
		return nil, err
	}
	if b.optional && b.node.Nullable && t.Kind() == reflect.Pointer { // the pointer stands for absence
		plain := *b.node
		plain.Nullable = false
		b.node = &plain
	}
	if _, ok := tags["default"]; ok {
		return nil, errors.New("a body has no default")
	}
	b.decoder, err = newBodyDecoder(b.node, b.typ, i)
	return b, err
}

// mediaTypes lists what a body may be, for documents and for the answer to others.
func (b *bodyPlan) mediaTypes(c *Config) []string {
	if b.raw {
		if b.media == "" {
			return []string{"*/*"}
		}
		return []string{b.media}
	}
	list := []string{"application/json"}
	for name := range c.Transcode {
		list = append(list, name)
	}
	sortStrings(list[1:])
	return list
}

// bindBody reads the body into its field. What is wrong with it is reported; what stands
// in the way of reading it is the binder's error.
func (b *binder) bindBody(p *bodyPlan, in place) {
	to := in.at(p.offset)
	if p.optional && b.r.ContentLength() == 0 {
		return
	}
	kind := b.r.Header("Content-Type")
	transcode, ok := b.wants(p, kind)
	if !ok {
		return
	}
	if p.parts {
		store(to, Parts{b.r})
		return
	}
	body, err := b.r.Bytes()
	if err != nil {
		b.err = err
		return
	}
	if p.raw {
		body = bytes.Clone(body) // which is lent
		if w, ok := schema.WrappedBy(p.typ); ok && w.Optional {
			store(to, Optional[Raw]{Value: body, Set: true})
		} else if p.typ.Kind() == reflect.Pointer {
			store(to.alloc(rawType), Raw(body))
		} else {
			store(to, Raw(body))
		}
		return
	}
	if transcode != nil {
		if body, err = transcode(nil, body); err != nil {
			b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "syntax", Message: "is not " + mediaType(kind)})
			return
		}
	}
	if isBlank(body) {
		if !p.optional {
			b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "empty"})
		}
		return
	}
	p.decoder.decode(b, p, body, to)
}

// isBlank reports whether a text has nothing but white space.
func isBlank(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// wants checks the media type; false when it is another than the operation takes,
// which is the binder's error.
func (b *binder) wants(p *bodyPlan, kind string) (transcode func(dst, body []byte) ([]byte, error), ok bool) {
	if p.raw {
		ok = p.media == "" || covers(p.media, mediaType(kind))
	} else if ok = kind == "application/json" || isJSON(kind); !ok {
		transcode, ok = b.state.config.Transcode[mediaType(kind)]
	}
	if !ok {
		if kind == "" && b.r.ContentLength() == 0 {
			b.report.Add(schema.Violation{In: "body", Pointer: "#", Rule: "empty"})
			return nil, false
		}
		b.err = unsupported(p.mediaTypes(&b.state.config))
	}
	return transcode, ok
}

// unsupported is the problem of a body of another media type.
func unsupported(wanted []string) error {
	return &dunlin.ProblemDetails{
		Status: http.StatusUnsupportedMediaType,
		Detail: "the media type of the request body must be " + strings.Join(wanted, " or "),
	}
}

// mediaType returns a media type without its parameters, "" for what is none.
func mediaType(header string) string {
	name, _, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return name
}

// isJSON reports whether a Content-Type is JSON in UTF-8.
func isJSON(header string) bool {
	name, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	return err == nil && (name == "application/json" || strings.HasSuffix(name, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}
