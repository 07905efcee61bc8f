package dunlin

import (
	"fmt"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A JSONOption changes how JSON writes.
type JSONOption uint8

// JSONNoEscapeHTML writes <, > and & in strings unchanged. By default they are escaped, as in encoding/json, so that the
// text is safe inside HTML.
const JSONNoEscapeHTML JSONOption = 1

// JSONNilAsEmpty writes nil slices as [], nil maps as {} and nil byte slices as "". encoding/json writes null for them.
const JSONNilAsEmpty JSONOption = 2

// JSONOmitWriteOnly omits members whose fields have the tag writeOnly:"true", as package typed does in answers. It
// does not affect the output of MarshalJSON methods.
const JSONOmitWriteOnly JSONOption = 3

// JSON answers 200 with v as application/json. The body has the same bytes as the result of json.Marshal. JSON encodes v
// before it returns, so v may change afterwards. Plain values (structs, slices, maps, strings and numbers, without
// MarshalJSON or MarshalText) are encoded without an allocation. A value that cannot be encoded makes the response a 500
// whose cause is logged.
func JSON[T any](v T, options ...JSONOption) Response {
	x := exchange.NewOwn(&blockJSON.block)
	body, err := jsonwire.Append(x.Buf[:0], &v, jsonOptions(options))
	return encoded(x, body, err)
}

// encoded returns the response for a body that was encoded into x's buffer.
func encoded(x *exchange.Own, body []byte, err error) Response {
	x.Buf = body
	if err != nil {
		x.Free()
		return Response{}.fail(fmt.Errorf("JSON response: %w", err))
	}
	return Response{x.Answer(http.StatusOK, view.String(body))}
}

func jsonOptions(options []JSONOption) (o jsonwire.Options) {
	for _, opt := range options {
		switch opt {
		case JSONNoEscapeHTML:
			o.NoEscapeHTML = true
		case JSONNilAsEmpty:
			o.NilAsEmpty = true
		case JSONOmitWriteOnly:
			o.View = jsonwire.Answers
		}
	}
	return o
}
