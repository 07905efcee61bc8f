// Package topic passes messages to many clients, over WebSockets and event streams:
//
//	hub := topic.New(app, topic.Settings{})
//	_ = hub.Topic("orders/42").Publish([]byte(`{"state":"paid"}`))
//
// A topic has a log of its latest messages. Each message is encoded once for all subscribers, and charged to the app's memory
// budget. A subscriber is a position in the log. It has no queue, no channel and, on the loop engine, no goroutine. Publish
// notifies the event loops that have subscribers. Each loop then wakes its connections, and a connection sends all messages after
// its position in one write. The position of a client that does not read does not move. When the client reads again, it gets the
// messages after its position. If some of them are no longer in the log, the [Policy] of the topic applies.
//
// The ID of a message consists of the epoch of its hub and an offset, which counts the messages of all topics of the hub. A client
// that reconnects with the last ID it received continues at that message, if it reaches the same hub and the log still has the
// later messages.
//
// # Locks
//
// Locks are acquired in this order: websocket.Conn, feed, Hub, log; last the lock of the event loop's inbox, or that of the IDs. The lock
// that orders the packets of a shared hub is acquired before Hub, and not while one of the first two is held. The loop wakes subscribers
// while it holds the lock of the log. The subscribers read the log later.
//
//	hub.go      topics by name, settings         log.go       messages and their encodings
//	feed.go     the subscriptions of a client    audience.go  waking the subscribers of a loop
//	socket.go   WebSockets                       events.go    event streams and long polls
//	presence.go members                          wildcard.go  topics below a prefix
//	shared.go   hubs of several processes        replica.go   their keyed topics and members
//	client.js   the client for browsers
package topic
