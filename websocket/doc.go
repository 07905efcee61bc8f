// Package websocket serves WebSockets (RFC 6455) with compression (RFC 7692). [Handler.Accept], and [Accept] for a single
// connection, return the response that opens one:
//
//	var echo = websocket.New(websocket.Options{
//		Message: func(c *websocket.Conn, m websocket.Message) { _ = c.Send(m.Kind, m.Data) },
//	})
//
//	app.Get("/echo", func(r *dunlin.Request) dunlin.Response { return echo.Accept(r, nil) })
//
// There are two styles. Event functions (Options.Open, Message, Drain and Close) are called as things happen: on the loop engine
// on the event loop, so that an idle connection has no goroutine and no buffer. They may block: then the loop continues without
// them. With Options.Serve a connection has a goroutine, which calls [Conn.Read] and [Conn.Write].
//
// [Conn.Send] never waits. What the client does not take waits in memory, up to Options.MaxPending; then Send fails with
// [ErrFull], and Drain is called when the client has taken it. [Conn.Write] waits instead.
//
// The package answers pings, sends its own, closes connections whose client does not answer, and closes with the codes of the
// RFC: 1002 for a violation of the protocol, 1007 for invalid UTF-8, 1008 for too many frames, 1009 for a message that is too
// long, 1001 when the server drains, 1013 when it has no memory. Incomplete and decompressed messages are charged to the
// server's memory budget before they exist.
//
//	options.go  settings          accept.go  the opening handshake
//	conn.go     sending, reading  data.go    frames to messages
//	events.go   application code  close.go   the end of a connection
package websocket
