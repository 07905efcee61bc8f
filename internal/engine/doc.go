// Package engine serves stream connections with event loops that let the
// code they call block. It knows no HTTP: a [Handler] turns the bytes a
// connection received into the bytes it answers with.
//
// # The parts
//
// A loop is an epoll set with its connections, a timer wheel and an inbox; there is
// one a processor. At any time exactly one goroutine, a [Driver], drives a
// loop: it waits, reads what is ready into its own buffer, calls the
// handler, and writes the answers with one call a connection and turn.
//
//	accept ─▶ loop ──▶ Data inline ──▶ loop            the ordinary life
//	                   └─ blocks: taken over ──▶ loop  the goroutine keeps the connection,
//	                   │                               a fresh driver keeps the loop
//	                   └─ HandOff: worker ─────▶ loop  known to block
//
// # Who owns what
//
// Everything of a loop belongs to its driver. Everything of a [Conn] belongs
// to its owner: the loop's driver, or while the connection is away, the
// detached driver or worker that took it along. state.go has the table of
// ownership changes. Read and output buffers belong to the driver, so a connection
// holds memory only for what is unfinished: a partial request, unsent output.
//
// # TLS
//
// Between the socket and the handler there may be TLS ([Engine.ServeTLS]), by crypto/tls without a
// socket of its own: the handler sees what the records carry. The loop reads records into its buffer
// and opens them in place; the beginning of one stays with the connection, in a pooled buffer that the
// budget counts. What is sent is sealed last, 48 KB at a time: while the peer takes nothing, what
// follows is pending in clear text. Handshakes run on goroutines of their own, at most half of the
// processors at a time; one that waits for its client has none, and where as many have begun as may, the one
// whose client has been waited for longest is ended.
//
// # Where to look
//
//	engine.go    starting, serving, stopping        handler.go  what the user provides
//	loop.go      a turn of the loop                 inbox.go    what others ask of a loop
//	driver.go    serving one connection             drivers.go  spare drivers
//	takeover.go  losing the loop while blocked      monitor.go  who notices
//	watch.go     noticing waits that are over before
//	timed.go     losing the connection when late    sendfile.go files, by the system
//	memory.go    what a call that lasts gives back  background.go    calls that last for sure
//	part.go      calls about a part of a connection
//	state.go     who owns a connection              conn.go     what a connection is
//	output.go    sending, back pressure             unread.go   peers that ask and do not read
//	buffers.go   memory for the unfinished          holder.go   who holds it, and is ended
//	room.go      who waits for it                  lost.go     peers that have gone meanwhile
//	workers.go   the pool for handed-off requests   line.go     who waits for it
//	places.go    how many calls may wait
//	queue.go     a loop that does not keep up       waits.go    how long requests waited
//	timers.go    deadlines                          rate.go     peers that take too little
//	accept.go    new connections                    address.go  where they come from
//	proxy.go     ... by a proxy that says whose they are
//	blocking.go  reads and writes that wait
//	recall.go    what is likely to be complete soon
//	tls.go       connections that are secured       tlsline.go  handshakes, in line and at work
//	tlsturns.go  the line, by addresses             evict.go    connections that end for new ones
//	tlshandshake.go one of them                     tlsread.go tlswrite.go unsafetls.go
//	tlscalls.go  what it calls of the application
//	tlsend.go    peers that say so while a call goes on
//	keepalive.go peers that vanish                  edges_race.go edges_off.go  the race detector
//	syscalls.go  the system calls of the hot path, and all unsafe code but unsafetls.go's
//
// # A loop and its driver
//
// A loop is an epoll set with its connections, a timer wheel and an inbox; there is one for each
// processor. At any time exactly one goroutine, its driver, runs it: serve the events, the
// connections that have more to do, the messages and the deadlines, then wait. The epoll
// descriptor is itself watched by the runtime's network poller, so a waiting driver is a parked
// goroutine and not a blocked thread.
//
// Events are edge-triggered. A connection is read once a visit; when the read filled the buffer
// it is visited again in the next turn, after the others.
//
// The input, the output buffer and the parsed request belong to the driver. A loop reads into
// one large buffer (memory.go), in which nothing stays: what was read is copied to memory of its
// size, 4 KB that the driver keeps for most, and 16 KB and more takes the large buffer along. A
// connection owns memory only for what is unfinished: input not consumed yet, output not sent
// yet. Both live in pooled buffers of a few sizes.
//
// Accepting. Every loop watches the same listening descriptor, exclusively, so that the kernel
// wakes one. The loop that accepts gives the connection to the loop that has clearly the fewest,
// else keeps it. Without free descriptors, and at MaxConnections, accepting pauses. A connection
// that is one too many for its address (internal/admission/addresses.go) or for every loop gets
// an answer that was rendered beforehand, as far as that costs no wait, and is closed. On
// net/http the listener (internal/stdhttp/listener.go) does both. A connection of a trusted
// proxy counts for nobody; with the PROXY protocol it begins with a header that says whose it
// is. The loop engine looks at what has come without taking it until the header is whole
// (internal/engine/proxy.go), so that nothing is held for it; on net/http it is read when the
// connection's goroutine first asks for the peer (internal/stdhttp/proxy.go). What makes the
// system probe silent peers (keepalive.go) is set on the listener, from which connections
// inherit it.
//
// # How a call may block
//
// Around each action the driver moves the loop's epoch: odd means in an action. A monitor
// goroutine, awake only while loops are in actions, looks at the epochs at short intervals. A
// loop that it finds in the same odd epoch twice is taken over: the monitor moves the epoch on
// by compare-and-swap and starts a fresh driver, which carries on with the loop's work where the
// old one stood. The old driver, whose own compare-and-swap now fails, sees that it lost the
// loop. It keeps the one connection it was serving, writes the answer itself and gives the
// connection back.
//
// While a connection is away, an event for it leaves a note instead of being served. state.go
// has the table of owners and changes, and why no event is lost in between.
//
// A handler may say that a call is about one part of its connection (part.go), as a stream of
// many is: then a takeover takes the connection along with the loop, and what the late code has
// to say is left for the connection's next turn. internal/looph2 does so.
//
// What waits is bounded wherever it waits (internal/engine/places.go): an action that was taken
// over, or has given up its loop, has one of Config.MaxConcurrent places, as one on a worker
// has. It lends its place while it waits for its client, for the body say, or for room, and has none once its
// answer has begun. A driver that was taken over keeps its input, an output buffer of at most 16
// KB in which there is nothing (a larger one stays with the loop), or what has been answered
// before; the budget counts both.
//
// A wait of less than a millisecond, such as that for one answer of a database, is over before the monitor looks twice, while
// the loop stands still and its thread sleeps. So the first calls of a route are watched, all while a route is
// suspect, trials, and a sample of the others (watch.go): two looks at the clock and at the voluntary
// switches of the thread tell whether a call has waited. One that computes for as long has not.
//
// A route whose actions are taken over or wait in more than about one call of eight
// (internal/exchange/pace.go) is called blocking, as soon as that is so and not when they
// return: its requests go to a bounded pool of workers at once, most recently used goroutine
// first; while all places are taken they wait in line, Critical ones first, which may have an
// eighth more of them. So do then, unless they are Critical, requests of a route whose last
// calls were taken over now and then; those of routes that are quick go on. Now and then one
// request of a blocking route is tried on the loop. Four trials in a row that do not wait
// bring the route back; after a failed one the time to the next doubles, from 50 ms to at most
// 10 s.
//
// Routing is enclosed in the same way where it runs code of others (ConstraintFunc). What the
// engine itself logs goes through a bounded queue to a goroutine that may wait for the logger
// (internal/logqueue), since nothing watches the loop then.
//
// Operations that are known to block, such as reading a large body or writing a stream, give up
// the loop before they begin.
//
// A panic or runtime.Goexit in an action ends a driver's goroutine at most; a new driver
// continues with the loop.
//
// # When more comes than can be served
//
// A loop that keeps up serves events as epoll gives them. One that does not is saturated
// (internal/engine/queue.go): it fetches all events every millisecond or so and serves their
// connections from a queue of its own. So it knows how long each has waited. It accepts fewer connections at once then, and leaves
// a connection that has sent many requests after 0.1 ms.
//
// What is ready after a long turn, such as the first, is taken to have come in the middle of it. A connection of
// parts counts for as many requests as it had lately when it was served, since how many it has this time is known
// only then.
//
// [overload.Queue] judges each queue by the age of its oldest request; the documentation of its package has the rules. In an
// overload, requests that have waited longer than Config.QueueTarget are overdue. The handler
// still parses and routes an overdue request, since its route may be Critical; else it appends a
// 503 that is rendered beforehand (internal/loophttp/refuse.go), which takes a few microseconds
// with the two system calls.
//
// The line for a worker (internal/engine/line.go) is judged in the same way. While it stands,
// whoever came last is served first, and a timer, which runs only while somebody is in line,
// gives the overdue back to their loops to be refused.
//
// With Config.AdaptiveLimit the number of workers follows how long their jobs take
// ([overload.Concurrency]): fewer run when more only wait for each other.
//
// How many requests of a route may run at once (Limit, LimitBy) is counted by a guard around its
// action, outside all middleware and on both engines (limit.go). Its places are given back when
// the action has ended, by whatever means, and by settle after a stream. A route without limits
// has no guard.
//
// # Slow and silent peers
//
// Deadlines are ticks of a timer wheel, filed lazily: a deadline that moves later, as an idle
// timeout does with each request, costs nothing until the old tick comes. With nothing filed and
// nothing to do, no timer is set.
//
// Output that the socket does not take stays with the connection, and while there is any the
// connection is not read: back pressure reaches the client. Pipelined requests wait likewise
// while the kernel holds unsent what was answered to earlier ones (unread.go). A peer that takes
// less than MinWriteRate over WriteTimeout is cut off (rate.go); what it has taken is what its
// system has confirmed, for a socket's buffer may hold more than a slow peer takes in an hour. A
// head must be here within HeadTimeout, and a body come at MinBodyRate over each BodyTimeout
// (internal/exchange/slow.go), else the answer is a 408. Only the time counts in which the
// server waits for the client: not that in which an action does not read, or a stream has
// nothing to send. One that stays idle too long is closed without a word.
//
// # TLS
//
// Engine.ServeTLS puts crypto/tls, unmodified, between the sockets of a listener and the
// handler, which sees what the records carry (tls.go). Crypto/tls has no socket of its own:
// internal/tlsmem lends it whole records and gathers what it makes. Where it would wait, it is
// told so by an error that is temporary, and asked again when more has come; pinned_test.go
// there holds it to that. The loop reads records into its buffer, where crypto/tls opens them: they are lent to
// it in the place of its own buffer (unsafelend.go there), which an idle connection has none of. The
// beginning of a record stays with the connection, in a pooled buffer that the budget counts, so
// that a tls.Conn holds no input while its connection waits. A call that reads lends records in the same way, if it
// wants as much at once as they carry; else a copy is taken, so that their memory does not wait with what is left.
//
// What is sent is sealed last, 48 KB at a time and straight before it goes to the socket. While
// the peer takes nothing, what follows is pending in clear text, so that an answer which many
// are sent lies in memory once. Pending output, its rates and its bounds are those of ciphertext
// but for that.
//
// The loop gathers a ClientHello (512 B in most cases). Then the handshake runs on a goroutine
// of its own (tlshandshake.go), with 40 KB of the budget, for at most the time that a head may
// take. Handshakes have a line of their own (tlsline.go), judged as others are, and at most half
// of the processors; while one waits for its client it has none, nor while code of the app that it calls
// does not return at once (tlscalls.go). Where as many have
// begun as may, one that waits for its client is ended, of the address with most handshakes, so that clients
// which stop in the middle keep nobody out. Addresses have turns in the line. Those that carry a session wait in a
// line of their own; the two have turns.
//
// The package is for Linux; elsewhere it is empty.
package engine
