// Package middleware provides middleware, one per file: [RequestID], [AccessLog], [Compress],
// [ETag], [CORS], [BasicAuth] and others. Most use only the public API, and are examples of how to
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
// RequestID, AccessLog, CORS, SecureHeaders and RateLimit are features, see [dunlin.Group.Install]. They apply to
// every answer, including those that middleware does not see: the app sends some before or without an action, or while
// a late one still runs. Features are outside of all middleware.
//
// A constructor X with settings has one parameter, an XConfig, whose zero fields stand for defaults: Compress(CompressConfig{}).
// One with a single setting has that as its parameter: a header's name, a host, or a list of origins or media types. A value
// that several routes share, such as Sessions, is made by a function New, whose configuration has the name of the value.
//
// The order of middleware matters: the first one sees the request first and the response last.
//
// [RateLimit], [Sessions] and [Idempotency] keep their state in memory, or in a package store that
// several machines share. [ResponseCache] stores responses in memory. docs/middleware has a page
// about each, and their order.
package middleware
