// Package engine serves stream connections with event loops. The code that the loops call may block. The package knows no HTTP:
// a [Handler] turns the bytes that a connection received into the bytes of the answer.
//
// # The parts
//
// A loop is an epoll set with its connections, a timer wheel and an inbox. There is one loop for each processor. At any time
// exactly one goroutine, a [Driver], drives a loop: it waits, reads the input that is ready into its own buffer, calls the
// handler, and writes the answers with one call for each connection and turn.
//
//	accept ─▶ loop ──▶ Data inline ──▶ loop            the usual case
//	                   └─ blocks: taken over ──▶ loop  the goroutine keeps the connection,
//	                   │                               a fresh driver keeps the loop
//	                   └─ HandOff: worker ─────▶ loop  the call is known to block
//
// # Ownership
//
// All fields of a loop belong to its driver. All fields of a [Conn] belong to its owner. The owner is the loop's driver, or,
// while the connection is away, the detached driver or worker that serves it. state.go has the table of ownership changes. Read
// and output buffers belong to the driver, so a connection holds memory only for unfinished data: a partial request, unsent
// output.
//
// # Where to look
//
//	engine.go    starting, serving, stopping        handler.go  the interface of the user
//	loop.go      a turn of the loop                 inbox.go    messages to a loop
//	driver.go    serving one connection             drivers.go  spare drivers
//	takeover.go  losing the loop while blocked      monitor.go  detecting blocked loops
//	watch.go     detecting waits shorter than the monitor's interval
//	timed.go     losing the connection when late    sendfile.go files, sent by the system
//	memory.go    releasing buffers in long calls    background.go    calls known to be long
//	part.go      calls about a part of a connection
//	switch.go    connections that have switched to another protocol
//	state.go     the owner of a connection          conn.go     the state of a connection
//	output.go    sending, back pressure             unread.go   peers that send requests and do not read
//	buffers.go   memory for unfinished data         holder.go   accounts of that memory, eviction
//	workers.go   the pool for handed-off requests   line.go     the queue for workers
//	permits.go    the number of calls that may wait  lost.go     peers lost during a call
//	queue.go     a saturated loop                   waits.go    how long requests waited
//	timers.go    deadlines                          rate.go     peers that read too slowly
//	accept.go    new connections                    address.go  peer addresses
//	proxy.go     peer addresses in the PROXY protocol
//	blocking.go  reads and writes that wait
//	recall.go    a short wait for the rest of a message
//	tls.go       connections with TLS               tlsline.go  handshakes, queued and running
//	tlssources.go  fair queueing of handshakes by address  evict.go  closing connections for new ones
//	tlshandshake.go one handshake                   tlsread.go tlswrite.go unsafetls.go
//	tlscalls.go  handshakes in application code
//	tlsend.go    a close_notify during a call
//	keepalive.go peers that vanish                  edges_race.go edges_off.go  happens-before edges for the race detector
//	syscalls.go  the system calls of the hot path, and all unsafe code except that of unsafetls.go
//
// # A loop and its driver
//
// A turn of the driver serves the events, the connections with unfinished work, the messages and the deadlines, then waits. The
// epoll descriptor is itself watched by the runtime's network poller, so a waiting driver is a parked goroutine and not a
// blocked thread.
//
// Events are edge-triggered. A connection is read once in a visit. If the read filled the buffer, the connection is visited
// again in the next turn, after the others.
//
// The input, the output buffer and the parsed request belong to the driver. A loop reads into one large buffer (memory.go),
// which is free again after each call. Input that must stay is copied to memory of its size. For most input that is a buffer of
// 4 KB that the driver keeps; input of 16 KB and more keeps the large buffer. A connection owns memory only for input that is
// not consumed yet and for output that is not sent yet. Both are stored in pooled buffers of a few sizes.
//
// Accepting. Every loop watches the same listening descriptor, exclusively, so that the kernel wakes one. The loop that accepts
// keeps the connection, unless another loop has clearly fewer: then it passes the connection to the loop with the fewest.
// Without free descriptors, and at MaxConnections, accepting pauses. A connection beyond the limit for its address
// (internal/admission/addresses.go), or beyond every loop's limit, is closed after a prerendered response, if that can be sent
// without blocking. With net/http the listener (internal/stdhttp/listener.go) enforces both limits. Connections from trusted
// proxies are exempt from the limit per address. With the PROXY protocol a connection begins with a header that contains the address
// of the client. The loop engine peeks at the input until the header is complete (internal/engine/proxy.go), so that no memory is
// held for the header. On
// net/http the header is read when the connection's goroutine first asks for the peer (internal/stdhttp/proxy.go). The options
// that make the system probe silent peers (keepalive.go) are set on the listener, from which connections inherit them.
//
// # How a call may block
//
// Around each action the driver increments the loop's epoch: an odd epoch means that an action runs. A monitor goroutine, awake
// only while loops are in actions, looks at the epochs at short intervals. A loop with the same odd epoch in two looks is taken
// over: the monitor increments the epoch by compare-and-swap and starts a fresh driver, which continues the loop's work where
// the old one stopped. The compare-and-swap of the old driver now fails, so it learns that it lost the loop. It keeps the one
// connection that it was serving, writes the answer itself and gives the connection back.
//
// While a connection is away, an event for it is noted instead of served. state.go has the table of owners and changes, and the
// reason why no event is lost in between.
//
// A handler may say that a call is about one part of its connection (part.go), such as one of many streams. Then a takeover
// moves the connection with the loop to the new driver. Output of the blocked call is sent in the connection's next turn.
// internal/looph2 uses this for streams.
//
// The number of waiting calls is bounded (internal/engine/permits.go): an action that was taken over, or has given up its loop,
// has one of Config.Limits.MaxConcurrent permits, like an action on a worker. It yields its permit while it waits for its client, for the
// body for example, or for room. It has no permit once its answer has begun. A driver that was taken over keeps its input and an
// output buffer. An empty output buffer is at most 16 KB (a larger one stays with the loop); otherwise the buffer contains the
// answers so far. The budget counts input and output.
//
// A wait of less than a millisecond, such as that for one answer of a database, is over before the monitor looks twice.
// Meanwhile the loop stands still and its thread sleeps. So watch.go measures the first calls of each route, all calls of suspect
// routes, all trials, and a sample of the rest. The clock and the voluntary switches of the thread, read before and
// after a call, tell whether the call has waited. Computing does not count as waiting.
//
// A route is called blocking when more than about one call in eight is taken over or waits (internal/exchange/blockingstat.go);
// the calls need not have returned. Its requests go to a bounded pool of workers at once, the most recently used goroutine
// first. While all permits are taken they wait in line. Critical requests go first and may exceed the limit by one eighth. While all
// permits are taken, requests of a route whose last calls were sometimes taken over wait in line too, unless they are Critical;
// those of quick routes run on the loop. From time to time one request of a blocking route is tried on the loop. Four trials in
// a row without a wait bring the route back to the loop. After a failed trial the time to the next doubles, from 50 ms to at
// most 10 s.
//
// Routing that runs application code (ConstraintFunc) is monitored in the same way. Log lines of the engine itself go
// through a bounded queue to a goroutine that may wait for the logger (internal/logqueue), since no monitor watches the loop
// then.
//
// Operations that are known to block, such as reading a large body or writing a stream, give up the loop before they begin.
//
// A panic or runtime.Goexit in an action ends at most a driver's goroutine; a new driver continues with the loop.
//
// # Overload
//
// A loop that keeps up serves events in the order of epoll. A loop that does not is saturated (internal/engine/queue.go): it
// fetches all events about every millisecond and serves their connections from a queue of its own. So it knows how long each
// connection has waited. While saturated, it accepts fewer connections at once, and leaves a connection with many pipelined
// requests after 0.1 ms.
//
// A connection found ready after a long turn is assumed to have become ready halfway through that turn. A multiplexed connection
// counts as many requests as it had at its last visit, because the current number is not yet known.
//
// [overload.Queue] judges each queue by the age of its oldest request; the documentation of its package has the rules. In an
// overload, requests that have waited longer than Config.Limits.QueueTarget are overdue. The handler still parses and routes an
// overdue request, since its route may be Critical. Other overdue requests get a 503 that is rendered beforehand
// (internal/loophttp/refuse.go), which takes a few microseconds with the two system calls.
//
// The line for a worker (internal/engine/line.go) is judged in the same way. In an overload the newest request is
// served first. A timer, which runs only while the line is not empty, gives overdue requests back to their loops to be refused.
//
// With Config.Limits.Adaptive the number of workers follows the duration of their jobs ([overload.Concurrency]): fewer run when
// additional ones would only wait for each other.
//
// The number of requests of a route that may run at once (Limit, LimitBy) is counted by a guard around its action, outside all
// middleware and on both engines (limit.go). The guard releases a permit when the action has ended, also by a panic, and settle
// releases the permit after a stream. A route without limits has no guard.
//
// # Slow and silent peers
//
// Deadlines are ticks of a timer wheel, filed lazily: a deadline that moves later, as an idle timeout does with each request,
// costs nothing until the old tick. A loop without filed deadlines and without work sets no timer.
//
// Output that the socket does not accept stays with the connection. While there is any, the connection is not read: back
// pressure reaches the client. Pipelined requests wait likewise while the kernel holds unsent answers to earlier ones
// (unread.go). A peer that receives less than MinWriteRate over WriteTimeout is cut off (rate.go). Bytes count as received when
// the peer's system has acknowledged them, for a socket's buffer may hold more than a slow peer receives in an hour. A head
// must arrive within HeadTimeout, and a body at MinBodyRate over each BodyTimeout (internal/exchange/slow.go), else the answer
// is a 408. Only the time in which the server waits for the client counts; the time in which an action does not read, or a
// stream has no data to send, does not. A connection that stays idle too long is closed without an answer.
//
// # TLS
//
// Engine.ServeTLS puts crypto/tls, unmodified, between the sockets of a listener and the handler, which gets the plaintext of
// the records (tls.go). crypto/tls has no socket of its own: internal/tlsmem lends it complete records and gathers its output.
// Where crypto/tls would wait, it gets a temporary error, and is called again when more input has arrived; pinned_test.go of
// internal/tlsmem tests that it allows this. The loop reads records into its buffer, where crypto/tls decrypts them in place:
// they are lent to it instead of its own buffer (unsafelend.go of internal/tlsmem), so an idle connection has no such buffer.
// The beginning of a record stays with the connection, in a pooled buffer that the budget counts, so that a tls.Conn holds no
// input while its connection waits. A read by a call lends records in the same way if it wants at least as many bytes at once
// as they carry. Otherwise the records are copied, so that their memory is not held until the rest is read.
//
// Output is encrypted last, 48 KB at a time and immediately before it goes to the socket. While the peer accepts nothing, the
// rest of the output is pending in plaintext, so that a response shared by many clients is stored once. All other counts and limits
// of pending output refer to ciphertext.
//
// The loop gathers a ClientHello (512 B in most cases). Then the handshake runs on a goroutine of its own (tlshandshake.go),
// with 40 KB of the budget, for at most the time limit of a head. Handshakes have a line of their own (tlsline.go), judged like
// the others, and use at most half of the processors. A handshake that waits for its client uses no processor. A handshake has
// no processor either while code of the application that it calls does not return at once (tlscalls.go). When the limit of
// concurrent handshakes is reached, the handshake that has waited longest for its client, of the address with the most handshakes,
// is closed. So clients that stop in the middle keep no others out. The queue is served round-robin by address. Handshakes that
// resume a session have a queue of their own. The two queues alternate.
//
// The package is for Linux; elsewhere it is empty.
package engine
