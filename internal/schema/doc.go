// Package schema compiles Go types to schemas: the JSON that a type accepts and produces, in the
// terms of JSON Schema 2020-12. Requests are checked against a compiled [Node], and documents are
// written from the same Node, so that documents and checks always agree.
//
//	node.go      the result of compiling a type
//	compile.go   types into nodes          members.go  the members of a struct
//	rules.go     rules from field tags     tag.go      parsing tags
//	number.go    exact decimal numbers     format.go   formats of strings
//	pattern.go   regular expressions that mean the same everywhere
//	scan.go      scanning JSON             check.go    checking it against a node
//	nameset.go   duplicate names of members
//	scalar.go    checking scalars          unique.go   equal JSON values
//	decoder.go   rules for one-pass decoders of package jsonwire
//	violation.go violations                pointer.go  their positions
//	template.go  patterns as path templates
//	describe.go  types with their own JSON methods
//
// Package typed uses this package to read requests, and package openapi uses it to write documents.
package schema
