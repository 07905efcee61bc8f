package jsonwire

import (
	"encoding/json"
	"slices"
	"strings"
)

// Error is the error of all encoding functions: the position in the value where encoding stopped, and the reason.
//
// errors.As finds the reason as one of these types of encoding/json: *json.UnsupportedTypeError; *json.UnsupportedValueError for NaN,
// an infinity or a cycle; *json.MarshalerError if a user's method failed or returned invalid JSON. As in encoding/json, the reason
// for an invalid json.Number has none of these types.
type Error struct {
	Err error // the reason, never nil

	tokens []string // path to the value, innermost step first
}

// maxPointerTokens limits the number of steps in a printed JSON pointer, because a path that contains a cycle has more than
// maxDepthUnchecked steps.
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

// within adds one step at the front of the path to the value. token is the key or the index of the step.
func (e *Error) within(token string) *Error {
	e.tokens = append(e.tokens, token)
	return e
}

// textError wraps a *json.MarshalerError to name MarshalText as the method that failed. Only encoding/json can set that name in a
// MarshalerError.
type textError struct{ err *json.MarshalerError }

func (e *textError) Error() string {
	return "json: error calling MarshalText for type " + e.err.Type.String() + ": " + e.err.Err.Error()
}

func (e *textError) Unwrap() error { return e.err }
