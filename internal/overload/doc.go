// Package overload decides which requests a server refuses because it cannot serve all of them, and how many
// actions run at once. It knows neither connections nor HTTP.
//
// # The rules
//
// Requests wait in a queue in front of an event loop, a pool of workers, or the handshakes of TLS. Each queue has one
// [Queue], which judges it by the age of its oldest request. There are two times: the target (Config.Limits.QueueTarget,
// 10 ms by default) and the interval, which is ten targets.
//
//  1. Nothing is refused while the oldest request waits for at most a target, or while fewer than 64 requests wait.
//  2. An overload begins when the oldest request has waited for longer than a target during a whole interval, and
//     more requests come than the present clients explain. There are two such signs:
//     - The queue grows from outside. It is a quarter longer than it was before the latest interval, as far as 20
//     intervals back, and more than an eighth of the requests since then came from idle connections. A connection is idle if
//     it was last served more than five intervals ago. A queue that has stood for more than 10 intervals is also compared
//     with its length 10 to 20 intervals ago, so that slow growth is noticed. A queue that is getting shorter does not grow.
//     - Clients give up. In a quarter of the windows of 20 intervals, more than one request in eight was abandoned: its
//     client closed before its turn. A window is a quarter of an interval.
//  3. During an overload, a request that has waited for longer than a target is refused. Requests of Critical routes
//     are the only exception.
//  4. An overload ends when nothing was refused for 20 intervals. It also ends when refusing does not help: during two
//     intervals, half of all connections were waiting. Then the next overload begins 20 intervals later at the earliest.
//  5. First requests on new connections are a burst, and come from outside only when they go on: when they were a
//     quarter of all requests in three quarters of the windows of 20 intervals.
//
// A thousand clients that ask again as soon as they are answered make a queue of a thousand requests. It does not
// grow, and refusing some of them would make none of the others faster: that is not an overload. Twice as many requests
// as can be served make a queue that grows until all connections wait: that is one.
//
// # Bounds
//
// The length of the queue is bounded by the connections and their streams. A pool of few connections that are never idle
// hides an overload from the server: the requests wait at the client.
//
// [Concurrency] bounds how many actions run at once by how long they take, see Config.Limits.Adaptive.
package overload
