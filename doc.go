// Package dunlin is an HTTP service framework in which an action returns its
// response, nothing on the request path allocates, and memory has a ceiling.
//
//	app := dunlin.New(dunlin.Config{})
//	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
//		id, err := r.Int("id")
//		if err != nil {
//			return dunlin.Error(err)
//		}
//		return dunlin.JSON(User{ID: id})
//	})
//	log.Fatal(app.ListenAndServe("127.0.0.1:3000"))
//
// # Ownership
//
// Every string that a [Request] hands out is safe: it stays valid and
// unchanged for ever. Every []byte it hands out is borrowed: it is valid until
// the response has been sent, and in builds with the race detector it is
// overwritten with 0xCC then, so that tests catch a view that was kept.
//
// A [Response] is a value. One that owns encoded bytes or headers of its own
// (JSON, Problem, anything after [Response.Header]) may be returned once:
// those bytes go back to a pool when they have been sent.
package dunlin
