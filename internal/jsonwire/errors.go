package jsonwire

import (
	"encoding/json"
	"slices"
	"strings"
)

// Error is the error of all encoding functions: the position in the value where encoding stopped, and the reason. The reason is, with
// errors.As, one of the types of encoding/json: *json.UnsupportedTypeError, *json.UnsupportedValueError (NaN, infinities, cycles), or
// *json.MarshalerError (a user's method failed or returned invalid JSON). For an invalid json.Number it has no such type, as in
// encoding/json.
type Error struct {
	Err error // the reason, never nil

	tokens []string // path to the value, innermost step first
}

// maxPointerTokens limits the printed pointer to the value: in a cycle the path is as long as the depth at which cycles are
// detected.
const maxPointerTokens = 32

// Pointer returns the JSON pointer (RFC 6901) of the value that could not be encoded. It is empty for the whole value. A pointer of
// more than 32 tokens ends in "/…".
func (e *Error) Pointer() string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for i, token := range slices.Backward(e.tokens) {
		if len(e.tokens)-i > maxPointerTokens {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		b.WriteString(escape.Replace(token))
	}
	return b.String()
}

func (e *Error) Error() string {
	reason := strings.TrimPrefix(e.Err.Error(), "json: ")
	if len(e.tokens) == 0 {
		return "encode JSON: " + reason
	}
	return "encode JSON: at " + e.Pointer() + ": " + reason
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// within adds one step, a key or an index, to the path to the value.
func (e *Error) within(token string) *Error {
	e.tokens = append(e.tokens, token)
	return e
}

// textError is a *json.MarshalerError that names MarshalText as the failed method, which only encoding/json can set.
type textError struct{ err *json.MarshalerError }

func (e *textError) Error() string {
	return "json: error calling MarshalText for type " + e.err.Type.String() + ": " + e.err.Err.Error()
}

func (e *textError) Unwrap() error { return e.err }
