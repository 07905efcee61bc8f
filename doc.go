// Package dunlin is an HTTP service framework in which an action returns its
// response and an ordinary request allocates nothing.
//
//	app := dunlin.New(dunlin.Config{Addr: "127.0.0.1:3000"})
//	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
//		id, err := r.Int("id")
//		if err != nil {
//			return dunlin.Error(err)
//		}
//		return dunlin.JSON(User{ID: id})
//	})
//	if err := app.Run(context.Background()); err != nil {
//		log.Fatal(err)
//	}
//
// # Routes
//
// A pattern is a path with parameters: {id} takes a segment, {id:int} one that is an
// integer, {path...} the rest. Which constraints there are, and which of several routes
// that match goes first, is said in package
// [github.com/dunlinhttp/dunlin/router]. Parameters are read by [Request.Param], typed by
// [Request.Int] and its like.
//
// # Ownership
//
// Every string that a [Request] hands out is safe: it stays valid and
// unchanged for ever. Every []byte it hands out is borrowed: it is valid until
// the response has been sent, and in builds with the race detector it is
// overwritten with 0xCC then, so that tests catch a view that was kept. An
// action that is late, see [Group.Timeout], keeps its loans until it returns.
//
// A [Response] is a value. One that owns encoded bytes or headers of its own
// (JSON, Problem, Stream, anything after [Response.Header]) may be returned
// once: what it owns goes back to a pool when it has been sent.
//
// # Engines
//
// On Linux, HTTP/1 and HTTP/2 over TCP and unix sockets, also by TLS, are served by event loops, everything else by
// net/http; [Config].Engine chooses. The answers are the same, and actions may
// block on either. An [App] is also an [http.Handler], for any other server.
package dunlin
