// Package websocket serves WebSockets (RFC 6455) with compression (RFC 7692). [Handler.Accept], and [Accept] for a single
// connection, return the response that opens one:
//
//	var echo = websocket.New(websocket.Options{
//		Message: func(c *websocket.Conn, m websocket.Message) { _ = c.Send(m.Kind, m.Data) },
//	})
//
//	app.Get("/echo", func(r *dunlin.Request) dunlin.Response { return echo.Accept(r, nil) })
//
// There are two styles. Event functions (Options.Open, Message, Drain and Close) are called for the events of a connection. The
// loop engine calls them on the event loop, so that an idle connection has neither a goroutine nor a buffer. They may block:
// another goroutine then takes over the loop. With Options.Serve a connection has a goroutine, which calls [Conn.Read] and
// [Conn.Write].
//
// [Conn.Send] never waits. Output that the client has not received is kept in memory, up to Options.MaxPending bytes. Beyond that,
// Send fails with [ErrFull], and Drain is called when the client has received the output. [Conn.Write] waits instead.
//
// The package answers pings, sends pings, and closes connections whose client does not answer. It uses the close codes of the RFC:
// 1002 for a violation of the protocol, 1007 for invalid UTF-8, 1008 for too many frames, 1009 for a message that is too long, 1001
// during a drain, 1012 at a restart, 1013 when there is no memory. The memory for incomplete and decompressed messages is charged to the server's
// memory budget before it is allocated.
//
//	options.go  settings          accept.go  the opening handshake
//	conn.go     sending, reading  data.go    frames to messages
//	events.go   application code  close.go   the end of a connection
package websocket
