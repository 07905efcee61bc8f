// Package openapi writes an OpenAPI 3.1 or 3.2 document for the operations that an app has
// registered with package typed. It serves the document together with a page on which a person can
// read about the operations and try them.
//
//	app := dunlin.New(dunlin.Config{})
//	shop.Register(app)
//	openapi.Serve(app, "/docs", openapi.Config{Title: "Shop", Version: "1.4.0"})
//
// The document always agrees with the program, because it is written from the plans by which
// package typed reads and checks requests. Its bytes are the same in every run. The responses of an
// operation are complete: the document lists every status that the operation can answer, and has no
// default response.
//
//	document.go   settings, and the document as a whole
//	operation.go  operations, parameters, bodies
//	response.go   answers and problems
//	schema.go     types as schemas
//	async.go      the AsyncAPI document of WebSockets and topics
//	names.go      names of types and operations
//	path.go       route patterns as path templates
//	serve.go      the page and the document over HTTP
//	export.go     writing the document without starting the server
//	diff.go       breaking changes between two documents
//	compare.go    schemas of two documents
//	write.go      JSON objects that keep the order in which members were added
package openapi
