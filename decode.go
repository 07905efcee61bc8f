package dunlin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Decode reads the body as JSON into a T. The body must be of the media type
// application/json (or one that ends in +json), hold one JSON value and no
// object members that T does not know, and be no longer than Config.MaxBody.
// The error is a *ProblemDetails that Error answers with 415, 413 or 400, and
// says where the input is wrong: by offset for a syntax error, by JSON pointer
// (RFC 6901) for a value of the wrong type and an unknown member.
func Decode[T any](r *Request) (T, error) {
	var v T
	if err := decode(r, &v); err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

func decode(r *Request, v any) error {
	if err := wantJSON(r.Header("Content-Type")); err != nil {
		return err
	}
	body, err := r.Bytes()
	if err != nil {
		return err
	}
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return badRequest("the request body is empty: it must be a JSON value", nil)
	}
	d := json.NewDecoder(&bytesReader{body})
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return decodeProblem(body, v, err)
	}
	rest := body[d.InputOffset():]
	if extra := bytes.TrimLeft(rest, " \t\r\n"); len(extra) > 0 {
		at := len(body) - len(extra)
		return jsonProblem(fmt.Sprintf("invalid JSON at offset %d: byte %q after the value", at, extra[0]), "", at, nil)
	}
	return nil
}

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
	}
	return &ProblemDetails{
		Status: http.StatusUnsupportedMediaType,
		Detail: fmt.Sprintf("the media type of the request body is %s: it must be application/json in UTF-8", contentType),
		Cause:  err,
	}
}

// decodeProblem says where a body is wrong.
func decodeProblem(body []byte, v any, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		pointer := pointerAt(body, int(wrong.Offset))
		return jsonProblem(fmt.Sprintf("invalid value at %s: a JSON %s where %s is wanted", orRoot(pointer), wrong.Value, kindName(wrong.Type)),
			pointer, int(wrong.Offset), err)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return jsonProblem(fmt.Sprintf("invalid JSON at offset %d: %s", syntax.Offset, syntax.Error()), "", int(syntax.Offset), err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return jsonProblem(fmt.Sprintf("invalid JSON at offset %d: the body ends in the middle of a value", len(body)), "", len(body), err)
	}
	if pointer, at, found := findUnknown(body, v); found {
		return jsonProblem(fmt.Sprintf("unknown member at %s", pointer), pointer, at, err)
	}
	return badRequest("the request body is not what is wanted: "+err.Error(), err)
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
