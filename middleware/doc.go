// Package middleware holds ready-made middleware, one a file: [RequestID], [AccessLog], [Compress],
// [ETag], [CORS], [BasicAuth] and others. Most use nothing but the public API, and so are also
// examples of how to write one.
//
//	app.Use(
//		middleware.RequestID("X-Request-ID"),
//		middleware.AccessLog(logger),
//		middleware.Compress(middleware.Compression{}),
//		middleware.ETag(),
//	)
//
// The order counts: the first sees the request first and the response last. Put AccessLog after
// RequestID, so that it logs the ID taken from the client, and before what changes responses, so
// that it logs what the client gets.
//
// [RateLimit], [Sessions] and [Idempotency] keep what they know of clients in memory, or in a
// package store that many machines share; [ResponseCache] keeps answers in memory. docs/middleware
// has a page about each, and the order they go in.
//
// Middleware does not see every answer: some are given before or without an action, or while a late
// one still runs. Policies and observers of the app do. [SendRequestID], [SendCORS],
// [SendSecureHeaders] and [LogAnswers] do there what RequestID, CORS, SecureHeaders and AccessLog
// do.
package middleware
