// Package topic passes messages to many clients, over WebSockets and event streams:
//
//	hub := topic.New(app, topic.Settings{})
//	_ = hub.Topic("orders/42").Publish([]byte(`{"state":"paid"}`))
//
// A topic has a log: the latest messages, each encoded once for all subscribers, and charged to the app's memory budget. A
// subscriber is a position in the log. It has no queue, no channel and, on the loop engine, no goroutine. A publish marks the
// event loops that have subscribers. Each loop then wakes its connections, and a connection sends all that it lacks in one write.
// A client that does not read stays where it is. When it reads again it gets what it has missed, or, if that has left the log,
// what the [Policy] says.
//
// Messages have IDs of an epoch, which is that of the hub, and an offset, which counts the messages of all its topics. A client
// that comes back with the last ID it has seen continues there: on the same hub, as long as the log has the messages.
//
// # Locks
//
// They are acquired in this order: websocket.Conn, feed, Hub, log, and then those of the event loop's inbox, or that of the IDs of
// other processes. That of the sender of messages to other processes is held alone. Subscribers are woken
// by the loop, which holds the lock of the log, and look at the log later.
//
//	hub.go     topics by name, settings, IDs    log.go     messages and their encodings
//	feed.go    the subscriptions of a client    group.go   waking the subscribers of a loop
//	socket.go  WebSockets               events.go  event streams and long polls
//	presence.go  members                wildcard.go  topics below a prefix
//	shared.go  hubs of several processes
//	script.go, client.js  the client for browsers
package topic
