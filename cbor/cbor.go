// Package cbor provides CBOR (RFC 8949) for responses and request bodies, by fxamacker/cbor. It is a
// module of its own.
//
//	typed.Configure(app, typed.Config{
//		Formats:   []*negotiate.Format{cbor.CBOR},
//		Transcode: map[string]func(dst, body []byte) ([]byte, error){"application/cbor": cbor.ToJSON},
//	})
//
// Members have the names of their json tags, unless they have cbor tags. Times and types with
// MarshalText are text, as in JSON; []byte is a byte string, and the zero time is null.
package cbor

import (
	"bytes"

	"github.com/fxamacker/cbor/v2"

	"github.com/dunlinhttp/dunlin/negotiate"
)

// CBOR is the format application/cbor.
var CBOR = &negotiate.Format{MediaType: "application/cbor", Append: appendCBOR}

var encoding = must(cbor.EncOptions{
	Time:          cbor.TimeRFC3339Nano,
	NilContainers: cbor.NilContainerAsEmpty,
	TextMarshaler: cbor.TextMarshalerTextString,
}.UserBufferEncMode())

func must[T any](mode T, err error) T {
	if err != nil {
		panic("cbor: " + err.Error()) // unreachable: the options are constants
	}
	return mode
}

func appendCBOR(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	err := encoding.MarshalToBuffer(v, b)
	return b.Bytes(), err
}
