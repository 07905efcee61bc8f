// Package negotiate chooses the media type and the language of a response by the preferences in the
// request (RFC 9110, section 12).
//
// A [Negotiator] encodes a value as JSON, XML or another format, by Accept:
//
//	var formats = negotiate.New(negotiate.JSON, negotiate.XML)
//
//	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
//		return negotiate.Answer(formats, r, find(r.Param("id")))
//	})
//
// Typed actions get formats by typed.Config.Formats. Module cbor has the format CBOR.
//
// [Languages] chooses the language of a text by Accept-Language (RFC 4647, section 3.4).
//
// Both choices are made without an allocation.
//
// Files: format.go has formats and the choice among them, language.go languages, accept.go the parser
// of both headers.
package negotiate
