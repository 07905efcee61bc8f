// Package middleware holds ready-made middleware, one a file: [RequestID],
// [AccessLog], [Compress], [ETag], [CORS], [BasicAuth] and others. They use nothing but the public API, so each
// is also an example of how to write one.
//
//	app.Use(
//		middleware.RequestID("X-Request-ID"),
//		middleware.AccessLog(logger),
//		middleware.Compress(middleware.Compression{}),
//		middleware.ETag(),
//	)
//
// The order counts: the first sees the request first and the response last. Put
// AccessLog after RequestID, so that it logs the taken-over ID, and before what
// changes responses, so that it logs what the client gets.
//
// [RateLimit], [Sessions] and [Idempotency] keep what they know of clients in memory, or in a package store that many
// machines share; [ResponseCache] keeps answers in memory. docs/middleware has pages about all of these, and the order they go in.
//
// What middleware does not see, because no action answers or the action is late, passes
// the app's policies and observers: [SendRequestID], [SendCORS], [SendSecureHeaders] and
// [LogAnswers] are those of RequestID, CORS, SecureHeaders and AccessLog.
package middleware
