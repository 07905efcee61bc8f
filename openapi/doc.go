// Package openapi writes the document of the operations that an app has registered with
// package typed, as OpenAPI 3.1 or 3.2, and serves it with a page to read and try it.
//
//	app := dunlin.New(dunlin.Config{})
//	shop.Register(app)
//	openapi.Serve(app, "/docs", openapi.Config{Title: "Shop", Version: "1.4.0"})
//
// The document cannot say anything else than the program does: it is written from the
// plans that requests are bound and checked by. It is the same, byte for byte, at every
// run. Its responses are a closed contract: every status that an operation can answer
// is there, and no default response.
//
//	document.go   settings, and the document as a whole
//	operation.go  operations, parameters, bodies
//	response.go   answers and problems
//	schema.go     types as schemas
//	names.go      names of types and operations
//	path.go       patterns as path templates
//	serve.go      the page and the document over HTTP
//	export.go     a document without listening
//	diff.go       what breaks clients between two documents
//	compare.go    schemas of two documents
//	write.go      JSON whose members are in order
package openapi
