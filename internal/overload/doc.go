// Package overload decides which requests a server refuses because it cannot serve all of them, and how many actions run at once.
// It does not depend on connections or HTTP.
//
// # The rules
//
// Requests wait in a queue in front of an event loop, a pool of workers, or the handshakes of TLS. Each queue has one
// [Queue], which judges it by the age of its oldest request. The rules use two times: the target
// (Config.Limits.QueueTarget, 10 ms by default) and the interval, which is ten targets.
//
//  1. Nothing is refused while the oldest request waits for at most a target, or while fewer than 64 requests wait.
//  2. An overload begins when the oldest request has been older than a target during a whole interval, and there is a
//     sign that more requests arrive than the present clients explain. There are two signs:
//     - The queue grows because of connections that were idle. It is more than a quarter longer than its maximum in the 20
//     intervals before the latest one, and more than an eighth of the requests of the latest interval came from idle
//     connections. A connection is idle if it was last served more than five intervals ago. To notice slow growth, a queue
//     whose oldest request has been older than a target for more than 10 intervals is also compared with its maximum 10 to
//     20 intervals ago. A queue that has just become shorter does not count as growing.
//     - Clients give up. In a quarter of the windows of 20 intervals, more than one request in eight was abandoned: its
//     client closed the connection before its turn. A window is a quarter of an interval.
//  3. During an overload, a request that has waited for longer than a target is refused. Requests of Critical routes
//     are the only exception.
//  4. An overload ends when nothing was refused for 20 intervals. It also ends when refusing does not help: during two
//     intervals, more than half of all connections were waiting. Then the next overload begins 20 intervals later at the
//     earliest.
//  5. First requests on new connections often come in bursts, which is no overload. So they count like requests of idle
//     connections only if the burst continues: if they were more than a quarter of all requests in three quarters of the
//     windows of 20 intervals.
//
// Two examples: a thousand clients that send their next request after each answer make a queue of a thousand requests. It
// does not grow, and refusing some of the requests would make none of the others faster: this is not an overload. Twice as
// many requests as can be served make a queue that grows until all connections wait: this is an overload.
//
// # Bounds
//
// The length of the queue is bounded by the connections and their streams. If clients use a pool of few connections that
// are never idle, the server cannot see an overload: the requests wait at the clients.
//
// [Concurrency] finds a limit for the number of concurrent actions from their durations, see Config.Limits.Adaptive.
package overload
