// Package schema compiles Go types to schemas. A schema describes the JSON that a type accepts and
// produces, in the terms of JSON Schema 2020-12. Requests are checked against a compiled [Node], and
// documents are written from the same Node, so that documents and checks always agree.
//
//	node.go      the result of compiling a type
//	compile.go   compiling types into nodes   members.go  the members of a struct
//	rules.go     rules from field tags        tag.go      parsing tags
//	number.go    exact decimal numbers        format.go   formats of strings
//	pattern.go   regular expressions with the same meaning in Go and in ECMA-262
//	scan.go      scanning JSON                check.go    checking JSON against a node
//	nameset.go   duplicate names of members
//	scalar.go    checking scalars             unique.go   equal JSON values
//	decoder.go   rules for package jsonwire, whose decoders check while they decode
//	violation.go violations                   pointer.go  positions of violations
//	template.go  route patterns as OpenAPI path templates
//	describe.go  types with their own JSON methods
//
// Package typed uses this package to read requests, and package openapi uses it to write documents.
package schema
