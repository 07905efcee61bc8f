//go:build linux

package engine

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
)

// A Handler gives connections their meaning. The engine calls it on the
// goroutine that owns the connection, never twice at once for one connection.
//
// In every method that has one, in is borrowed until the method returns. It holds
// all bytes received and not yet consumed, oldest first.
type Handler interface {
	// NewScratch makes what a driver carries for the handler between
	// calls, [Driver.Scratch]; one per driver, never shared.
	NewScratch() any

	// Data is called when bytes have arrived. It appends answers to d.Out, in
	// order, and returns how many bytes of in it is done with. The engine keeps
	// the rest and passes it again, in front of what arrives next. A handler
	// that consumes nothing of Config.ReadBuffer bytes loses the connection.
	Data(d *Driver, c *Conn, in []byte) (consumed int)

	// Background is called for a call of Data that asked for it by [Driver.Background], with the
	// same scratch, on a goroutine of its own and a driver that is not inline. It
	// goes on where Data stopped, and may append answers and block for as long as it
	// likes, or until a limit of its own ([Driver.EnterFor]). Then Data is called
	// again if input was left.
	Background(d *Driver, c *Conn)

	// EOF is called once, when the peer will send no more. Whatever Data could
	// answer has been answered. The handler may append a last answer; then the
	// connection is closed.
	EOF(d *Driver, c *Conn, in []byte)

	// Timeout is called when the deadline of [Conn.SetDeadline] has passed; the
	// deadline is then clear. The handler may append an answer and set a
	// deadline again. The connection is closed unless a deadline was set.
	Timeout(d *Driver, c *Conn, in []byte)

	// Detached is called when a driver loses its loop, or gives it up, between Enter and
	// Leave. The handler's code may be running: only what it leaves alone until
	// Leave may be used of the scratch. It reports whether the code is to count against
	// Config.MaxWorkers, which it does unless it sends its answer already.
	Detached(scratch any) (waits bool)

	// Expiring is called when the limit of [Driver.EnterFor] passed, to copy what
	// the answer depends on from the scratch of the driver whose code is late to
	// that of the one which will answer. The code runs, but cannot pass Leave
	// until Expiring returns.
	Expiring(late, fresh any)

	// Expired is called after Expiring. d is the driver that answers: the handler
	// may append to its Out; the connection is then closed.
	Expired(d *Driver, c *Conn)

	// Refused is called when there is no memory to go on with what a connection
	// has sent, which may be part of a request or wait to be served. The handler lets
	// go of Conn.Proto and may append an answer to d.Out; the connection is then
	// closed. It may ask for Background to do so, since it must not hold up a loop.
	Refused(d *Driver, c *Conn, in []byte)

	// Pended is called after a call of Data that left so many bytes of output, more than a
	// little, which the peer did not take at once. Not for connections of many parts.
	Pended(d *Driver, bytes int64)

	// Abandoned is called when a call for c ended in a panic or in
	// runtime.Goexit. The handler may complete or truncate d.Out; the
	// connection is then closed, unless the call was about a part of it (part.go): then, if
	// Driver.Expired, connection and output are not d's any more. cause is the panic's value, nil for
	// Goexit.
	Abandoned(d *Driver, c *Conn, cause any)

	// Closed is called exactly once, when the connection is over, whoever ended
	// it, and after every other call for it has returned. It runs on a loop's
	// driver and must be quick; d.Enter is not for it.
	Closed(c *Conn)
}

// Config holds what an Engine needs to know. The zero value of every field
// has a documented default.
type Config struct {
	// Start is when the engine's clock began. Default: when it is made.
	Start time.Time

	// Loops is the number of event loops. Default: GOMAXPROCS.
	Loops int

	// ReadBuffer is the size in bytes of a driver's read buffer, and so the most
	// input that Data ever sees at once. Default: 64 KiB.
	ReadBuffer int

	// MaxConns bounds the open connections; at the bound accepting pauses and
	// further clients wait in the listen backlog. Default: no bound but the
	// system's.
	MaxConns int

	// KeepAlive is after what silence of its peer the system probes a TCP connection,
	// and the interval between probes; 0 for never.
	KeepAlive time.Duration

	// MaxLoopConns bounds the open connections of each loop. One that finds all
	// loops full is closed at once, after LoopRefusal. Default: no bound.
	MaxLoopConns int

	// Addresses bounds the open connections from each remote address. One too many
	// is closed at once, after AddressRefusal. Default: no bound.
	Addresses *admission.Addresses

	// Proxies are those whose connections stand for many clients: Addresses does not bound
	// them. Default: none.
	Proxies *clientaddr.Trust

	// ProxyHeader is within what time a connection of one of Proxies must say whose it is by
	// a header of the PROXY protocol. Default: they have none.
	ProxyHeader time.Duration

	// LoopRefusal and AddressRefusal are what a connection that is refused is sent,
	// as far as that costs no wait. Default: nothing.
	LoopRefusal, AddressRefusal []byte

	// OpenTimeout is the deadline a new connection starts with, as if set by
	// Conn.SetDeadline. Default: 60 s. Negative: none.
	OpenTimeout time.Duration

	// MaxWorkers bounds the calls of the handler that wait: on the goroutines that serve
	// handed-off connections, and on drivers that have lost their loop in an action. Those
	// that wait for their peer do not count, see places.go. When it is reached,
	// handed-off connections wait in line; urgent ones may be an eighth more.
	// Default: 10,000.
	MaxWorkers int

	// AdaptiveWorkers lets the bound be lower than MaxWorkers while handed-off
	// connections take longer than usual, see overload.Concurrency.
	AdaptiveWorkers bool

	// IdleWorkers bounds the worker goroutines kept for later. Default: 256.
	IdleWorkers int

	// WriteGrace is the period over which MinWriteRate is judged. Default: 30 s.
	WriteGrace time.Duration

	// MinWriteRate is the rate, in bytes a second, below which a peer with
	// pending output is cut off. Default: 256. Negative: only one that takes
	// nothing at all.
	MinWriteRate int

	// Budget is what the engine takes the memory from that connections hold: kept
	// input, pending output, buffers of streams, input that waits for a worker.
	// Default: one without a bound.
	Budget *admission.Budget

	// Holders keeps apart who holds what of Budget, and ends those who hold most when there
	// is no room. Default: one for Budget.
	Holders *admission.Holders

	// SecureMemory bounds what the TLS of open connections is reckoned to take, in bytes, beside
	// Budget. Above it idle connections with TLS are closed, the longest idle first. Default: no bound.
	SecureMemory int64

	// QueueTarget is how long a request may wait while more come than can be served;
	// calls of Data for later ones have Driver.Overdue true. Default: 10 ms.
	// Negative: none ever has.
	QueueTarget time.Duration

	// TakeoverAfter is about how long a handler may stay between Enter and Leave
	// before its loop is given to another driver. Default: 500 µs.
	TakeoverAfter time.Duration

	// Shed counts what the engine refuses, puts off and cuts off. Default: nobody
	// counts.
	Shed *admission.Shed

	// Logger receives the few events nobody else can report, such as running out
	// of file descriptors. Default: slog.Default().
	Logger *slog.Logger

	// CountSwitches returns how often the calling thread has gone to sleep. Default: as the system counts. For tests.
	CountSwitches func() int64
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.Loops, runtime.GOMAXPROCS(0))
	set(&c.ReadBuffer, 64<<10)
	set(&c.MaxConns, 1<<31-1)
	set(&c.MaxLoopConns, 1<<31-1)
	set(&c.MaxWorkers, 10_000)
	set(&c.IdleWorkers, 256)
	set(&c.MinWriteRate, 256)
	if c.WriteGrace == 0 {
		c.WriteGrace = 30 * time.Second
	}
	if c.Budget == nil {
		c.Budget = new(admission.Budget)
	}
	if c.OpenTimeout == 0 {
		c.OpenTimeout = time.Minute
	}
	if c.QueueTarget == 0 {
		c.QueueTarget = 10 * time.Millisecond
	}
	if c.TakeoverAfter == 0 {
		c.TakeoverAfter = 500 * time.Microsecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.CountSwitches == nil {
		c.CountSwitches = voluntarySwitches
	}
	return c
}
