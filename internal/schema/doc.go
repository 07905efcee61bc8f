// Package schema compiles Go types into schemas: what JSON a type takes and gives, in
// the words of JSON Schema 2020-12. One compiled [Node] is what requests are checked
// against and what documents are written from, so that the two cannot differ.
//
//	node.go      what a type is compiled into
//	compile.go   types into nodes          members.go  the members of a struct
//	rules.go     rules from field tags     tag.go      reading tags
//	number.go    exact decimal numbers     format.go   formats of strings
//	pattern.go   regular expressions that mean the same everywhere
//	scan.go      reading JSON              check.go    checking it against a node
//	scalar.go    checking scalars          unique.go   equal JSON values
//	decoder.go   rules for one-pass decoders of package jsonwire
//	violation.go what is wrong             pointer.go  where
//	template.go  patterns as path templates
//	describe.go  types that read and write their JSON themselves
//
// Package typed binds requests with it, package openapi writes documents from it.
package schema
