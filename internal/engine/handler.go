//go:build linux

package engine

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A Handler implements the protocol of connections. The engine calls it on the goroutine that owns the connection, never twice
// at once for one connection.
//
// The argument in of a method is borrowed until the method returns. It contains all bytes that were received and not yet
// consumed, oldest first.
type Handler interface {
	// NewScratch makes [Driver.Scratch], which a driver carries for the handler between calls. Each driver has its own.
	NewScratch() Scratch

	// Data is called when bytes have arrived. It appends answers to d.Out, in order, and returns the number of bytes of in
	// that it has consumed. The engine keeps the rest and passes it again, before later input. If a handler consumes none of
	// Config.ReadBuffer bytes, the connection is closed.
	Data(d *Driver, c *Conn, in []byte) (consumed int)

	// Background continues a call of Data that has called [Driver.Background], with the same scratch, on a separate goroutine
	// and a driver that is not inline. It may append answers and block without limit, or until its own limit
	// ([Driver.EnterFor]). Then Data is called again if input remains.
	Background(d *Driver, c *Conn)

	// EOF is called once, when the peer will send no more. All input that Data could answer has been answered. The handler may
	// append a last answer; then the connection is closed.
	EOF(d *Driver, c *Conn, in []byte)

	// Timeout is called when the deadline of [Conn.SetDeadline] has passed. The handler may append an answer and set a new
	// deadline. Without a new deadline the connection is closed.
	Timeout(d *Driver, c *Conn, in []byte)

	// Expired is called after [Scratch.Expiring], when a call has exceeded the limit of [Driver.EnterFor]. d is another driver
	// than that of the late call. The handler may append an answer to d.Out. The connection is then closed.
	Expired(d *Driver, c *Conn)

	// Refused is called when there is no memory to continue with the input of a connection: a part of a request, or requests that
	// wait to be served. The handler releases Conn.Proto and may append an answer to d.Out; the connection is then closed.
	// Refused must not delay the loop; it may call Driver.Background to answer on another goroutine.
	Refused(d *Driver, c *Conn, in []byte)

	// Pended is called after a call of Data whose output the peer did not accept at once, with the number of bytes left, if
	// that is more than memory.Small. It is not called for a connection with a Protocol (see Conn.Switch), such as HTTP/2.
	Pended(d *Driver, bytes int64)

	// Abandoned is called when a call for c ended in a panic or in runtime.Goexit. cause is the value of the panic, nil for
	// Goexit. The handler may complete or truncate d.Out. The connection is then closed, unless the call was about a part of it
	// (part.go). In that case, if Driver.Expired is true, another driver has the connection, and the handler must not touch the
	// connection or d.Out.
	Abandoned(d *Driver, c *Conn, cause any)

	// Closed is called exactly once, when the connection is closed by either side, after every other call for the connection has
	// returned. It runs on a loop's driver and must be quick; it must not use d.Enter.
	Closed(c *Conn)
}

// A Scratch is the memory that a driver carries for the handler between calls.
type Scratch interface {
	// Detached is called when the driver loses its loop, or gives it up, between Enter and Leave. The handler's code may be
	// running: only the parts of the scratch that this code does not use until Leave may be used. collected is true if the loop was
	// taken during a garbage collection. Then it is possible that the code does not wait, but computes and was delayed by the
	// collector. Detached reports whether the code counts against Config.MaxWorkers. The code counts unless it already sends its
	// answer.
	Detached(collected bool) (waits bool)

	// Expiring is called when the limit of [Driver.EnterFor] has passed. It copies the data that the answer depends on to fresh,
	// the scratch of the driver that will answer. The code of the late call still runs, but cannot pass Leave until Expiring
	// returns.
	Expiring(fresh Scratch)
}

// Config configures an Engine. The zero value of every field has a documented default.
type Config struct {
	// Start is the start time of the engine's clock. Default: the creation of the engine.
	Start time.Time

	// Loops is the number of event loops. Default: GOMAXPROCS.
	Loops int

	// ReadBuffer is the size in bytes of a driver's read buffer, and so the maximum input of one call of Data. Default: 64 KiB.
	ReadBuffer int

	// MaxConns bounds the open connections; at the bound accepting pauses and further clients wait in the listen backlog.
	// Default: only the bound of the system.
	MaxConns int

	// KeepAlive is the time of silence after which the system probes the peer of a TCP connection, and the interval between
	// probes. Default: no probes.
	KeepAlive time.Duration

	// MaxLoopConns bounds the open connections of each loop. A connection that finds all loops full is closed at once, after
	// LoopRefusal. Default: no bound.
	MaxLoopConns int

	// Addresses bounds the open connections from each remote address. A connection above the bound is closed at once, after
	// AddressRefusal. Default: no bound.
	Addresses *admission.Addresses

	// Proxies are the addresses whose connections carry many clients: Addresses does not bound them. Default: none.
	Proxies *clientaddr.Trust

	// ProxyHeader is the time within which a connection of one of Proxies must send a header of the PROXY protocol, which
	// contains the address of its client. Default: proxies send no header.
	ProxyHeader time.Duration

	// LoopRefusal and AddressRefusal are sent to a refused connection, as far as that is possible without waiting. A
	// connection with TLS gets no answer. Default: empty.
	LoopRefusal, AddressRefusal []byte

	// OpenTimeout is the initial deadline of a new connection, as if set by Conn.SetDeadline. Default: 60 s. Negative: none.
	OpenTimeout time.Duration

	// MaxWorkers bounds the calls of the handler that may wait: calls on the goroutines that serve handed-off connections, and
	// calls on drivers that have lost their loop in an action. Calls that wait for their peer do not count, see permits.go. At
	// the bound, handed-off connections wait in line; urgent ones may exceed the bound by an eighth. Default: 10,000.
	MaxWorkers int

	// AdaptiveWorkers lowers the bound below MaxWorkers while handed-off connections take longer than usual, see
	// overload.Concurrency.
	AdaptiveWorkers bool

	// IdleWorkers bounds the idle worker goroutines. Default: 256.
	IdleWorkers int

	// WriteGrace is the period over which MinWriteRate is judged. Default: 30 s.
	WriteGrace time.Duration

	// MinWriteRate is the rate, in bytes a second, below which a peer with pending output is cut off. Default: 256. Negative:
	// only a peer that receives nothing is cut off.
	MinWriteRate int

	// Budget is charged for the memory that connections hold: input that is kept, also while it waits for a worker; pending
	// output; buffers of streams. Default: a budget without a bound.
	Budget *memory.Budget

	// SecureMemory bounds the estimated memory of TLS for open connections, in bytes. This memory is not part of Budget. Above
	// the bound idle connections with TLS are closed, the longest idle first. Default: no bound.
	SecureMemory int64

	// QueueTarget is the maximum waiting time of a request while the engine is overloaded. In a call of Data for requests that
	// have waited longer, Driver.Overdue is true. Default: 10 ms. Negative: no request is overdue.
	QueueTarget time.Duration

	// TakeoverAfter is the approximate time that a handler may stay between Enter and Leave before its loop is given to another
	// driver. Default: 500 µs.
	TakeoverAfter time.Duration

	// Shed counts the requests and connections that the engine refuses, delays and cuts off. Default: refusals are not counted.
	Shed *admission.Shed

	// Logger receives the events that only the engine can report, such as a lack of file descriptors. Default: slog.Default().
	Logger *slog.Logger

	// CountSwitches returns how often the calling thread has gone to sleep. Default: the count of the system. For tests.
	CountSwitches func() int64

	// CountPauses returns the number of pauses of the program for garbage collections: one begins a collection, one ends it. Default:
	// the count of the runtime. For tests.
	CountPauses func() int64
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
		c.Budget = new(memory.Budget)
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
	if c.CountPauses == nil {
		c.CountPauses = countPauses
	}
	return c
}
