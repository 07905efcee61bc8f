// Package middleware provides middleware, one per file: [RequestID], [AccessLog], [Compress],
// [ETag], [CORS], [BasicAuth] and others. Most of them use only the public API, so they show how to
// write middleware.
//
//	app.Install(
//		middleware.RequestID("X-Request-ID"),
//		middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}),
//		middleware.CORS(cors),
//	)
//	app.Use(
//		middleware.CrossOrigin(),
//		middleware.Compress(middleware.CompressConfig{}),
//		middleware.ETag(),
//	)
//
// RequestID, AccessLog, CORS, SecureHeaders and RateLimit are features, see [dunlin.Group.Install]. They apply to every
// answer, including answers that middleware does not see, because the app sends them without an action, or at a timeout
// while the action still runs. Features are outside of all middleware.
//
// A constructor X with several settings has one parameter, an XConfig, whose zero fields select defaults:
// Compress(CompressConfig{}). A constructor with a single setting has the setting as its parameter: the name of a header, a
// host, or a list of origins or media types. A value that several routes share is made by a function whose name begins with
// New, such as NewSessions.
//
// The order of middleware matters: the first middleware sees the request first and the response last.
//
// [RateLimit], [Sessions] and [Idempotency] store their state in memory, or in a store (package store)
// that several machines share. [ResponseCache] stores responses in memory. The folder docs/middleware
// has a page about each middleware, and about their order.
package middleware
