// Package engine serves stream connections with event loops. The code that the loops call may block. The package does not
// implement HTTP: a [Handler] turns the bytes that a connection received into the bytes of the answer.
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
// All fields of a loop belong to its driver. All fields of a [Conn] belong to the owner of the connection. The owner is the
// loop's driver, or, while the connection is away, the detached driver or the worker that serves the connection. state.go has the
// table of ownership changes. Read and output buffers belong to the driver, so a connection holds memory only for unfinished
// data: a partial request, unsent output.
//
// # Where to look
//
//	engine.go    starting, serving, stopping        handler.go  the interface of the user
//	loop.go      a turn of the loop                 inbox.go    messages to a loop
//	driver.go    serving one connection             drivers.go  spare drivers
//	takeover.go  loops of blocked drivers           monitor.go  detecting blocked loops
//	watch.go     detecting waits shorter than the monitor's interval
//	timed.go     time limits of calls               sendfile.go files, sent by the system
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
// Events are edge-triggered. The driver reads once from each ready connection. If the read filled the buffer, the connection is
// served again in the next turn, after the others.
//
// The input, the output buffer and the parsed request belong to the driver. A loop reads into one large buffer (memory.go).
// Before the handler is called, input of at most 4 KB is copied to a buffer of the driver, and longer input to a pooled buffer.
// Most input of more than 16 KB is not copied: it keeps the large buffer, and the loop gets another one. Input that is not
// consumed yet and output that is not sent yet are stored in pooled buffers of a few sizes.
//
// Accepting. Every loop watches the same listening descriptor, in exclusive mode, so that the kernel wakes only one loop. The
// loop that accepts a connection keeps it, unless another loop has clearly fewer connections. Then it passes the connection to
// the loop with the fewest. Without free descriptors, and at MaxConnections, accepting pauses. A connection is closed if its
// address is at its limit (internal/admission/addresses.go), or if all loops are at their limit. A prerendered response is sent
// first if that is possible without blocking. With net/http the listener (internal/stdhttp/listener.go) enforces both limits.
// Connections from trusted proxies are exempt from the limit per address. With the PROXY protocol a connection begins with a
// header that contains the address of the client. The loop engine peeks at the input until the header is complete
// (internal/engine/proxy.go), so that it holds no memory for the header. On net/http the header is read when the connection's
// goroutine first asks for the address of its peer (internal/stdhttp/proxy.go). The options that make the system probe silent
// peers (keepalive.go) are set on the listener, from which connections inherit them.
//
// # How a call may block
//
// Around each action the driver increments the loop's epoch: an odd epoch means that an action runs. A monitor goroutine, awake
// only while loops are in actions, looks at the epochs at short intervals. A loop with the same odd epoch in two looks is taken
// over: the monitor increments the epoch by compare-and-swap and starts a fresh driver, which continues the loop's work where the
// old one stopped. The compare-and-swap of the old driver now fails, so this driver learns that it lost the loop. It keeps the
// connection that it was serving, writes the answer itself and gives the connection back to the loop.
//
// While a connection is away, its loop records the events of the connection instead of serving them. state.go explains why no
// event is lost when the connection returns.
//
// A handler may say that a call is about one part of its connection (part.go), such as one of many streams. Then a takeover
// moves the connection with the loop to the new driver. Output of the blocked call is sent in the connection's next turn.
// internal/looph2 uses this for streams.
//
// The number of waiting calls is bounded (internal/engine/permits.go): an action that was taken over, or has given up its loop,
// has one of Config.Limits.MaxConcurrent permits, like an action on a worker. It yields its permit while it waits for its client,
// for example for the body, or for memory. It releases its permit when its answer begins. A driver that was taken over keeps its
// input and an output buffer. An empty output buffer is at most 16 KB (a larger one stays with the loop); otherwise the buffer
// contains the answers so far. The budget counts input and output.
//
// A wait of less than a millisecond, such as the wait for one answer of a database, is over before the monitor looks twice.
// During the wait the thread of the loop sleeps, and the loop serves nothing. So watch.go measures the first calls of each route,
// all calls of routes with recent waits, all trials, and a sample of the other calls. It reads the clock and the thread's count
// of voluntary switches before and after a call. They show whether the call has waited. Computing does not count as waiting.
//
// A route is called blocking when more than about one call in eight is taken over or waits (internal/exchange/blockingstat.go). A
// call counts as soon as it is taken over. The requests of a blocking route go directly to a bounded pool of workers, which gives
// a request to the most recently used goroutine. While all permits are taken, these requests wait in line. Critical requests go
// first and may exceed the limit by one eighth. While all permits are taken, requests of a route with a recent takeover wait in
// line, too, unless they are Critical. Requests of quick routes run on the loop. From time to time one request of a blocking
// route is tried on the loop: a trial. Four trials in a row without a wait bring the route back to the loop. After a failed trial
// the time to the next doubles, from 50 ms to at most 10 s.
//
// Routing that runs application code (ConstraintFunc) is monitored in the same way. The engine itself writes log lines outside of
// monitored calls. So these lines go through a bounded queue to a goroutine that may wait for the logger (internal/logqueue).
//
// Before an operation that is known to block, such as reading a large body or writing a stream, the driver gives up its loop.
//
// A panic or runtime.Goexit in an action ends at most a driver's goroutine; a new driver continues with the loop.
//
// # Overload
//
// A loop that keeps up serves events in the order of epoll. A loop that does not keep up is saturated (internal/engine/queue.go):
// it fetches all events about every millisecond and serves their connections from a queue of its own. So it knows how long each
// connection has waited. While saturated, it accepts fewer connections at once, and leaves a connection with many pipelined
// requests after 0.1 ms.
//
// A connection found ready after a long turn is assumed to have become ready halfway through that turn. A multiplexed connection
// counts as many requests as it had at its last visit, because the current number is not yet known.
//
// [overload.Queue] judges each queue by the age of its oldest request; the documentation of its package has the rules. In an
// overload, requests that have waited longer than Config.Limits.QueueTarget are overdue. The handler still parses and routes an
// overdue request, since its route may be Critical. Other overdue requests get a prerendered 503 (internal/loophttp/refuse.go). A
// refusal takes a few microseconds, including the two system calls.
//
// The line for a worker (internal/engine/line.go) is judged in the same way. In an overload the newest request is served first.
// While the line is not empty, a timer returns overdue requests to their loops, which refuse them.
//
// With Config.Limits.Adaptive the number of workers follows the duration of their jobs ([overload.Concurrency]): it is lower when
// additional jobs would only wait for each other.
//
// The number of requests of a route that may run at once (Limit, LimitBy) is counted by a guard around its action, outside all
// middleware and on both engines (limit.go). The guard counts a request until its action has ended, also by a panic, or until its
// streamed response has ended. A route without limits has no guard.
//
// # Slow and silent peers
//
// Deadlines are ticks of a timer wheel. When a deadline moves later, as an idle timeout does with each request, the wheel changes
// only at the old tick. A loop without deadlines and without work sets no timer.
//
// Output that the socket does not accept stays with the connection. While there is any, the connection is not read: back pressure
// reaches the client. Pipelined requests wait likewise while the kernel holds unsent answers to earlier ones (unread.go). A peer
// that receives less than MinWriteRate over WriteTimeout is cut off (rate.go). Bytes count as received when the peer's system has
// acknowledged them, because the buffer of a socket may hold more than a slow peer receives in an hour. A head must arrive within
// HeadTimeout, and a body at MinBodyRate over each BodyTimeout (internal/exchange/slow.go), otherwise the answer is a 408. Only
// the time in which the server waits for the client counts; the time in which an action does not read, or a stream has no data to
// send, does not. A connection that stays idle too long is closed without an answer.
//
// # TLS
//
// Engine.ServeTLS puts crypto/tls, unmodified, between the sockets of a listener and the handler, which gets the plaintext of the
// records (tls.go). crypto/tls has no socket of its own: internal/tlsmem lends it complete records and gathers its output. Where
// crypto/tls would wait, it gets a temporary error, and is called again when more input has arrived; pinned_test.go of
// internal/tlsmem tests that crypto/tls allows this. The loop reads records into its read buffer, where crypto/tls decrypts them
// in place: crypto/tls uses the memory of the records instead of an input buffer of its own (unsafelend.go of internal/tlsmem).
// The connection keeps an incomplete record in a pooled buffer that the budget counts, so that a tls.Conn holds no input while
// its connection waits. When a call of the handler reads from the connection itself, records are lent in the same way if the call
// asks for at least as many bytes as they carry. Otherwise they are copied, so that their memory is free before the call reads
// the rest.
//
// Output is encrypted immediately before it goes to the socket, 48 KB at a time. While the peer accepts nothing, the rest of the
// output is pending in plaintext, so that a response shared by many clients is stored once. All other counts and limits of
// pending output refer to ciphertext.
//
// The loop gathers a ClientHello (512 B in most cases). Then the handshake runs on a goroutine of its own (tlshandshake.go), with
// 40 KB of the budget, for at most the time limit of a head. Handshakes have a line of their own (tlsline.go) with the same
// overload control as the line for workers, and use at most half of the processors. A handshake gives up its processor while it
// waits for its client, and while application code that it calls does not return quickly (tlscalls.go). At the limit of
// concurrent handshakes, the engine looks for the address with the most handshakes and closes the handshake of that address that
// has waited longest for its client. So clients that stop in the middle of a handshake do not keep other clients out. The queue
// is served round-robin by address. Handshakes that resume a session have a queue of their own. The two queues alternate.
//
// The package is for Linux; elsewhere it is empty.
package engine
