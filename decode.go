package dunlin

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Decode decodes the request body as JSON into a T. The media type must be application/json or end in +json. The body
// must hold one JSON value, contain no object members unknown to T, and fit the limit of [Request.Bytes]. The error is
// a *ProblemDetails: 415 for another media type, 400 for invalid JSON, and the errors of Bytes. A 400 for a body that is
// not empty has the byte offset of the error, counted from 0. For a value of the wrong type and for an unknown member it
// also has the JSON pointer (RFC 6901). Errors of UnmarshalJSON methods are only logged.
//
// Decoded values may use 16 KB plus four times the length of the body, but at most 4 MB, without being charged. Memory
// beyond that is charged to the memory budget, see [Request.ReserveMemory].
//
// Decode follows encoding/json of Go 1.26. Strings are safe copies that share memory: a string that
// the action keeps may retain 4 KB, and a string or number in an interface may retain 24 KB.
func Decode[T any](r *Request) (T, error) {
	var v T
	if err := decode(r, jsonwire.DecoderFor(reflect.TypeFor[T]()), &v); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

func decode(r *Request, d *jsonwire.Decoder, v any) error {
	if err := wantJSON(r.Header("Content-Type")); err != nil {
		return err
	}
	body, err := r.bytes(r.maxBody())
	if err != nil {
		return err
	}
	if refused := d.Read(body, v, decodeLimits, r); refused != nil {
		if r.bodyErr != nil {
			return r.bodyErr // the budget had no room for the values
		}
		return decodeProblem(body, refused)
	}
	return nil
}

// decodeLimits selects what Decode rejects in addition to encoding/json.
var decodeLimits = jsonwire.Limits{UnknownMembers: true}

// wantJSON returns an error for a media type other than JSON.
func wantJSON(contentType string) error {
	if contentType == "application/json" {
		return nil
	}
	mediaType, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	switch {
	case err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")) &&
		(charset == "" || strings.EqualFold(charset, "utf-8")):
		return nil
	case contentType == "":
		contentType = "none"
	case len(contentType) > longestMediaType:
		contentType = strings.ToValidUTF8(contentType[:longestMediaType], "") + "…"
	}
	return &ProblemDetails{
		Status: http.StatusUnsupportedMediaType,
		Detail: fmt.Sprintf("the media type of the request body is %s: it must be application/json in UTF-8", contentType),
		Cause:  err,
	}
}

// longestMediaType is the maximum number of bytes of a rejected media type that an error contains.
const longestMediaType = 100

// decodeProblem returns the problem for the first error in a body.
func decodeProblem(body []byte, p *jsonwire.Refusal) error {
	switch p.Kind {
	case jsonwire.ProblemSyntax, jsonwire.ProblemDepth:
		if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
			return badRequest("the request body is empty: it must be a JSON value", nil)
		}
		return syntaxProblem(body, p.Offset, p)
	case jsonwire.ProblemUnknown:
		return jsonProblem("unknown member at "+p.Pointer, p.Pointer, p.Offset, p)
	case jsonwire.ProblemType, jsonwire.ProblemName:
		want := jsonwire.Wanted(p.Want)
		if p.Quoted {
			want = "a string that holds " + jsonwire.Wanted(jsonwire.Indirect(p.Want))
		}
		return jsonProblem(fmt.Sprintf("invalid value at %s: %s instead of %s", orRoot(p.Pointer), jsonwire.Given(body[p.Offset:p.End]), want),
			p.Pointer, p.Offset, p)
	}
	return badRequest("the JSON of the request body is invalid", p)
}

// syntaxProblem returns the problem of a body whose JSON syntax is wrong at byte at.
func syntaxProblem(body []byte, at int, cause error) error {
	what := "the body ends within a value"
	if at < len(body) {
		what = "unexpected byte " + byteName(body[at])
	}
	return jsonProblem(fmt.Sprintf("invalid JSON at offset %d: %s", at, what), "", at, cause)
}

// byteName formats a byte for an error message: 'x', or 0xEF for a byte outside ASCII.
func byteName(c byte) string {
	if c < 0x80 {
		return strconv.QuoteRune(rune(c))
	}
	return fmt.Sprintf("%#02X", c)
}

// jsonProblem returns a 400 problem with offset and pointer as separate members, for programs.
func jsonProblem(detail, pointer string, offset int, cause error) error {
	at := map[string]any{"offset": offset}
	if pointer != "" {
		at["pointer"] = pointer
	}
	return &ProblemDetails{Status: http.StatusBadRequest, Detail: detail, Extensions: at, Cause: cause}
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "the top"
	}
	return pointer
}
