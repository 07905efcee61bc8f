// Package cbor provides CBOR (RFC 8949) for responses and request bodies, by fxamacker/cbor. It is a
// separate module.
//
//	typed.Configure(app, typed.Config{
//		Formats:   []*negotiate.Format{cbor.CBOR},
//		Transcode: map[string]func(dst, body []byte) ([]byte, error){"application/cbor": cbor.ToJSON},
//	})
//
// Members have the names of their cbor tags or, without a cbor tag, of their json tags. As in JSON,
// times and types with MarshalText are text. A []byte is a byte string, and the zero time is null.
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
