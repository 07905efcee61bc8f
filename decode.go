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

// Decode reads the body as JSON into a T. The body must be of the media type
// application/json (or one that ends in +json), hold one JSON value and no
// object members that T does not know, and be no longer than [Request.Bytes] takes.
// The error is a *ProblemDetails: 415 for another media type, those of Bytes, and 400
// for what is no such JSON. The last says where the input is wrong: by offset in
// bytes, counted from 0, and by JSON pointer (RFC 6901) for a value of the wrong type
// and an unknown member. What UnmarshalJSON methods say goes to the log alone.
//
// JSON means what it means to encoding/json, in Go 1.26. Strings are safe copies:
// many share one piece of memory, so a string that is kept may keep 4 KB.
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
	if !d.Try(body, v, decodeLimits) {
		reflect.ValueOf(v).Elem().SetZero() // which is as large as that of the second reading
		return decodeProblem(body, d.Explain(body, decodeLimits))
	}
	return nil
}

// decodeLimits say what Decode refuses beyond what encoding/json refuses.
var decodeLimits = jsonwire.Limits{UnknownMembers: true, MaxProblems: 1}

// wantJSON reports a media type that is not JSON.
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

// longestMediaType bounds how much of a media type that is not taken is repeated, in bytes.
const longestMediaType = 100

// decodeProblem says where a body is wrong.
func decodeProblem(body []byte, err *jsonwire.Refusal) error {
	switch p := &err.Problems[0]; p.Kind {
	case jsonwire.ProblemSyntax, jsonwire.ProblemDepth:
		if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
			return badRequest("the request body is empty: it must be a JSON value", nil)
		}
		return syntaxProblem(body, p.Offset, err)
	case jsonwire.ProblemUnknown:
		return jsonProblem("unknown member at "+p.Pointer, p.Pointer, p.Offset, err)
	case jsonwire.ProblemType, jsonwire.ProblemName:
		want := jsonwire.Wanted(p.Want)
		if p.Quoted {
			want = "a string that holds " + jsonwire.Wanted(jsonwire.Indirect(p.Want))
		}
		return jsonProblem(fmt.Sprintf("invalid value at %s: %s where %s is wanted", orRoot(p.Pointer), jsonwire.Given(body[p.Offset:p.End]), want),
			p.Pointer, p.Offset, err)
	}
	return badRequest("the JSON of the request body is not what is wanted", err)
}

// syntaxProblem is the problem of a body that is no JSON from offset at on.
func syntaxProblem(body []byte, at int, cause error) error {
	what := "the body ends in the middle of a value"
	if at < len(body) {
		what = "byte " + byteName(body[at]) + " may not stand there"
	}
	return jsonProblem(fmt.Sprintf("invalid JSON at offset %d: %s", at, what), "", at, cause)
}

// byteName writes a byte for people: 'x', or 0xEF for one that is no character.
func byteName(c byte) string {
	if c < 0x80 {
		return strconv.QuoteRune(rune(c))
	}
	return fmt.Sprintf("%#02X", c)
}

// jsonProblem is a 400 with the place as members of its own, for programs.
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
