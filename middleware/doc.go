// Package middleware provides middleware, one per file: [RequestID], [AccessLog], [Compress],
// [ETag], [CORS], [BasicAuth] and others. Most use only the public API, and are examples of how to
// write middleware.
//
//	app.Use(
//		middleware.RequestID("X-Request-ID"),
//		middleware.AccessLog(logger),
//		middleware.Compress(middleware.Compression{}),
//		middleware.ETag(),
//	)
//
// The order matters: the first middleware sees the request first and the response last. Put
// AccessLog after RequestID, so that it logs the client's ID, and before middleware that changes
// responses, so that it logs the response that the client gets.
//
// [RateLimit], [Sessions] and [Idempotency] keep their state in memory, or in a package store that
// several machines share. [ResponseCache] stores responses in memory. docs/middleware has a page
// about each, and their order.
//
// Middleware does not see every response: the app sends some before or without an action, or while
// a late one still runs. Policies and observers of the app see all. [SendRequestID], [SendCORS],
// [SendSecureHeaders] and [LogAnswers] apply RequestID, CORS, SecureHeaders and AccessLog to these
// responses, too.
package middleware
