package negotiate

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// A Format encodes values in a media type.
type Format struct {
	// MediaType is the media type without parameters, in lower case: "application/xml".
	MediaType string

	// Append appends the encoding of v to dst and returns the result. It must be safe for concurrent
	// use.
	Append func(dst []byte, v any) ([]byte, error)

	// Encodes reports whether values of a type can be encoded. Package typed calls it at
	// registration, and offers the format only for operations with such a type. Default: every type
	// can be encoded.
	Encodes func(t reflect.Type) bool
}

// JSON is the format of [dunlin.JSON].
var JSON = &Format{MediaType: "application/json", Append: appendJSON}

// XML is the format of encoding/xml. It cannot encode maps. Lists have no root element, so put a list
// into a struct. A field with the tag json:"-" must also have a tag xml, so that the field is not sent
// by mistake.
var XML = &Format{MediaType: "application/xml", Append: appendXML, Encodes: encodesXML}

func appendJSON(dst []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(dst, b...), err
}

func appendXML(dst []byte, v any) ([]byte, error) {
	if err := checkXML(reflect.TypeOf(v)); err != nil {
		return dst, err
	}
	w := bytes.NewBuffer(dst)
	_, _ = w.WriteString(xml.Header) // never fails
	err := xml.NewEncoder(w).Encode(v)
	return w.Bytes(), err
}

func encodesXML(t reflect.Type) bool { return checkXML(t) == nil }

// checkedXML has the results of checkXML by type: an error, or nil.
var checkedXML sync.Map

// checkXML returns an error if encoding/xml cannot encode all values of a type as one element.
func checkXML(t reflect.Type) error {
	if known, ok := checkedXML.Load(t); ok {
		err, _ := known.(error)
		return err
	}
	err := fmt.Errorf("negotiate: XML of %v: it has no root element: put it into a struct", t)
	if t != nil && hasRoot(t) {
		err = inXML(t, map[reflect.Type]bool{})
	}
	checkedXML.Store(t, err)
	return err
}

// hasRoot reports whether encoding/xml writes one element for a value of the type.
func hasRoot(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Interface, reflect.Chan, reflect.Func:
		return ownXML(t)
	}
	return true
}

var (
	xmlMarshaler  = reflect.TypeFor[xml.Marshaler]()
	textMarshaler = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

// ownXML reports whether the type has a method that encodes it.
func ownXML(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(xmlMarshaler) || p.Implements(textMarshaler)
}

// inXML returns an error if encoding/xml cannot encode all values of the type. It does not check values within interfaces.
// It also returns an error for a field with the tag json:"-" and without a tag xml. seen has the types whose check has begun.
func inXML(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || ownXML(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map, reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("negotiate: XML has no encoding of %v", t)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return inXML(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			tag, tagged := f.Tag.Lookup("xml")
			switch {
			case tag == "-" || !f.IsExported() && !f.Anonymous:
			case f.Tag.Get("json") == "-" && !tagged:
				return fmt.Errorf(`negotiate: XML of %v: the field %s has the tag json:"-", and no tag xml: add xml:"-"`, t, f.Name)
			default:
				if err := inXML(f.Type, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A Negotiator chooses one of several formats by Accept. It is immutable and safe for concurrent
// use.
type Negotiator struct {
	formats []*Format
	refusal string // the detail of a 406
}

// New returns a negotiator for formats in the order of preference. It panics without a format, if a
// format has no valid media type or no Append, and if two formats have the same media type.
func New(formats ...*Format) *Negotiator {
	if len(formats) == 0 {
		panic("negotiate: New: there is no format")
	}
	n := &Negotiator{}
	var names []string
	for i, f := range formats {
		if f == nil || f.Append == nil || strings.Count(f.MediaType, "/") != 1 || strings.ContainsAny(f.MediaType, "; *") || strings.ToLower(f.MediaType) != f.MediaType {
			panic(fmt.Sprintf("negotiate: New: format %d needs a media type in lower case, without parameters, and a function Append", i))
		}
		for _, other := range n.formats {
			if other.MediaType == f.MediaType {
				panic(fmt.Sprintf("negotiate: New: two formats have the media type %s", f.MediaType))
			}
		}
		n.formats, names = append(n.formats, f), append(names, f.MediaType)
	}
	n.refusal = "the response is available as " + strings.Join(names, ", ")
	return n
}

// Choose returns the format that Accept prefers, or nil if Accept excludes all formats. The weight of a
// format is that of the most specific media range that matches it: "application/xml" before
// "application/*" before "*/*". Choose returns the first format with the greatest weight. Without
// Accept it returns the first format.
//
// A vendor type of an API version, such as "application/vnd.acme.v2+json", matches the format of its
// suffix.
func (n *Negotiator) Choose(r *dunlin.Request) *Format {
	accept := r.HeaderList("Accept")
	if accept == "" {
		return n.formats[0]
	}
	var best *Format
	greatest := 0
	for _, f := range n.formats {
		if w := weightOf(accept, f.MediaType); w > greatest {
			best, greatest = f, w
		}
	}
	return best
}

// weightOf returns the weight of a media type, in thousandths.
func weightOf(accept, mediaType string) (w int) {
	specificity := 0
	for element, params := range elements(accept) {
		if s := specific(element, params, mediaType); s > specificity {
			specificity, w = s, weight(params)
		} else if s > 0 && s == specificity {
			w = max(w, weight(params))
		}
	}
	return w
}

// specific returns how specifically a media range matches a media type: 3 for the type itself, 2 for
// a range of its subtypes, 1 for all types, and 0 if the range does not match. A range with parameters
// other than charset=utf-8 matches no format, because the formats have no parameters.
func specific(element, params, mediaType string) int {
	for name, value := range parameters(params) {
		if strings.EqualFold(name, "q") {
			break
		}
		if !strings.EqualFold(name, "charset") || !strings.EqualFold(strings.Trim(value, `"`), "utf-8") {
			return 0
		}
	}
	slash := strings.IndexByte(mediaType, '/')
	switch {
	case strings.EqualFold(element, mediaType) || vendor(element, mediaType, slash):
		return 3
	case len(element) == slash+2 && strings.EqualFold(element[:slash+1], mediaType[:slash+1]) && element[slash+1] == '*':
		return 2
	case element == "*/*":
		return 1
	}
	return 0
}

// vendor reports whether element is a vendor type with the suffix of the media type, such as
// application/vnd.acme.v2+json.
func vendor(element, mediaType string, slash int) bool {
	const tree = "vnd."
	suffix := len(element) - (len(mediaType) - slash)
	return suffix > slash+len(tree) && element[suffix] == '+' &&
		strings.EqualFold(element[:slash+1], mediaType[:slash+1]) &&
		strings.EqualFold(element[slash+1:slash+1+len(tree)], tree) &&
		strings.EqualFold(element[suffix+1:], mediaType[slash+1:])
}

// MediaTypes returns the media types of the formats in the order of preference.
func (n *Negotiator) MediaTypes() []string {
	names := make([]string, len(n.formats))
	for i, f := range n.formats {
		names[i] = f.MediaType
	}
	return names
}

var varyAccept = dunlin.NewHeaderBlock("Vary", "Accept")

// NotAcceptable returns the answer to a request that accepts none of the formats: a 406 problem.
func (n *Negotiator) NotAcceptable() dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusNotAcceptable, Detail: n.refusal}).With(varyAccept)
}

// Answer answers 200 with v in the format that the request prefers, and Vary: Accept. It answers
// 406 if the request accepts none of the formats. If v cannot be encoded, it answers 500 and the cause
// is logged. An action that changes something should call [Negotiator.Choose] before the change, so that
// a request is not refused with 406 after it.
func Answer[T any](n *Negotiator, r *dunlin.Request, v T) dunlin.Response {
	switch f := n.Choose(r); f {
	case nil:
		return n.NotAcceptable()
	case JSON:
		return dunlin.JSON(v).With(varyAccept)
	default:
		return f.Response(v).With(varyAccept)
	}
}

// Response answers 200 with v in this format, regardless of Accept.
func (f *Format) Response(v any) dunlin.Response {
	b, err := f.Append(nil, v)
	if err != nil {
		return dunlin.Error(fmt.Errorf("negotiate: encode response as %s: %w", f.MediaType, err))
	}
	return dunlin.Bytes(f.MediaType, b)
}

// Vary returns the response with Vary: Accept, for responses that [Answer] has not made.
func Vary(resp dunlin.Response) dunlin.Response { return varyOn(resp, "Accept", varyAccept) }
