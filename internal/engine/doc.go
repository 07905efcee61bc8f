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
// socket of its own: the handler sees what the records carry. Handshakes run on goroutines of their own,
// at most half of the processors at a time.
//
// # Where to look
//
//	engine.go    starting, serving, stopping        handler.go  what the user provides
//	loop.go      a turn of the loop                 inbox.go    what others ask of a loop
//	driver.go    serving one connection             drivers.go  spare drivers
//	takeover.go  losing the loop while blocked      monitor.go  who notices
//	timed.go     losing the connection when late    sendfile.go files, by the system
//	memory.go    what a call that lasts gives back  aside.go    calls that last for sure
//	state.go     who owns a connection              conn.go     what a connection is
//	output.go    sending, back pressure             unread.go   peers that ask and do not read
//	buffers.go   memory for the unfinished          holder.go   who holds it, and is ended
//	room.go      who waits for it
//	workers.go   the pool for handed-off requests   line.go     who waits for it
//	places.go    how many calls may wait
//	queue.go     a loop that does not keep up       waits.go    how long requests waited
//	timers.go    deadlines                          rate.go     peers that take too little
//	accept.go    new connections                    address.go  where they come from
//	proxy.go     ... by a proxy that says whose they are
//	blocking.go  reads and writes that wait         descriptors.go  room for them in the kernel
//	recall.go    what is likely to be complete soon
//	tls.go       connections that are secured       tlsline.go  handshakes, in line and at work
//	tlshandshake.go one of them                     tlsread.go tlswrite.go unsafetls.go
//	keepalive.go peers that vanish                  edges_race.go edges_off.go  the race detector
//	syscalls.go  the system calls of the hot path, and all unsafe code but unsafetls.go's
//
// The package is for Linux; elsewhere it is empty.
package engine
