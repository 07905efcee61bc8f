// Package dunlin is an HTTP service framework in which an action returns its response and an ordinary request allocates
// nothing.
//
//	app := dunlin.New(dunlin.Config{Addr: "127.0.0.1:3000"})
//	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
//		id, err := dunlin.Param[int](r, "id")
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
// A pattern is a path with parameters: {id} matches a segment, {id:int} matches a segment that is an integer, {path...}
// matches the rest. Package [github.com/dunlinhttp/dunlin/router] describes the constraints and the precedence of matching
// routes. [Request.Param] reads a parameter as text; [Param] reads it as a number, a time or another type.
//
// # Ownership
//
// Every string that a [Request] returns is safe: it stays valid and unchanged forever. Every []byte that it returns is
// borrowed: it is valid until the response has been sent. Builds with the race detector then overwrite it with 0xCC, so
// that tests detect a retained slice. An action that exceeds its [Group.WithTimeout] keeps its borrowed bytes until it
// returns.
//
// A [Response] is a value. A response that owns encoded bytes or headers (from JSON, Problem or Stream, or any response
// after [Response.Header]) may be returned once: its memory returns to a pool when it has been sent.
//
// # Engines
//
// On Linux, event loops serve HTTP/1 and HTTP/2 over TCP and unix sockets, with and without TLS. net/http serves
// other listeners and systems. [Config].Engine selects the engine. The answers are the same, and actions may block on
// both engines. An [App] is also an [http.Handler], for any other server.
package dunlin
