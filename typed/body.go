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

// Raw is a request body that is not decoded. The tag contentType (`contentType:"image/png"`, `contentType:"image/*"`) names
// its media type, and a body of another type is refused. Without the tag, any type is accepted. The bytes are a copy and
// belong to the action. To read a body without a copy, omit this field and call [dunlin.Request.Bytes].
type Raw []byte

// A bodyPlan describes how to read the request body into the field Body.
type bodyPlan struct {
	node     *schema.Node
	optional bool // the body may be absent
	raw      bool
	parts    bool   // the action reads the form itself, because the type of Body is Parts
	media    string // the accepted media type of a raw body; empty accepts any

	index   []int
	offset  uintptr
	typ     reflect.Type // type of the field
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
			return nil, fmt.Errorf("contentType:%q is not a media type", tags["contentType"])
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
	if b.optional && b.node.Nullable && t.Kind() == reflect.Pointer { // a nil pointer means that the body is absent
		plain := *b.node
		plain.Nullable = false
		b.node = &plain
	}
	if _, ok := tags["default"]; ok {
		return nil, errors.New("a body cannot have a default")
	}
	b.decoder, err = newBodyDecoder(b.node, b.typ, i)
	return b, err
}

// mediaTypes lists the media types that the body may have, for documents and for answers with status 415.
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

// bindBody reads the request body into the field Body. It adds violations to the report. If the body cannot be read, it
// stores the error in b.err.
func (b *binder) bindBody(p *bodyPlan, in address) {
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
		if !b.copies(len(body)) {
			return
		}
		body = bytes.Clone(body) // the result of Bytes is borrowed
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
		if !b.copies(cap(body)) {
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

// isBlank reports whether text consists of white space only.
func isBlank(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// wants checks the media type of the body. kind is the Content-Type header, and ok reports whether the operation accepts
// it. transcode is the function that converts this media type to JSON, or nil. If the operation does not accept the type,
// wants sets b.err. If the request has neither a body nor a Content-Type, wants adds a violation instead. ok is false in
// both cases.
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

// unsupported returns the problem for a body whose media type is not accepted. wanted lists the accepted types.
func unsupported(wanted []string) error {
	return &dunlin.ProblemDetails{
		Status: http.StatusUnsupportedMediaType,
		Detail: "the media type of the request body must be " + strings.Join(wanted, " or "),
	}
}

// mediaType returns the media type in a header value, without its parameters. It returns "" if the value is not a valid
// media type.
func mediaType(header string) string {
	name, _, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return name
}

// isJSON reports whether the Content-Type header denotes JSON in UTF-8.
func isJSON(header string) bool {
	name, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	return err == nil && (name == "application/json" || strings.HasSuffix(name, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8"))
}
