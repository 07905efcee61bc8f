package exchange

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// An Upgrader is a Wire whose connection can switch to another protocol (RFC 9110, section 7.8).
type Upgrader interface {
	// Upgrade sends the head of a, a 101, with Connection and Upgrade. When the request has ended it passes the connection to
	// p. It does not keep a. The error is ErrLate if the request was answered without its action.
	Upgrade(a *Answer, p Protocol) error
}

// ErrCannotUpgrade is the error for a connection that cannot switch protocols: over HTTP/2 or HTTP/1.0, with a body that has
// not arrived, or with a writer of standard middleware that does not give up the connection.
var ErrCannotUpgrade = errors.New("upgrade: the connection cannot switch protocols")

// Upgrade switches the connection of w to p, with the head of a, which apply completes. It returns nil if the request was
// answered without its action.
func Upgrade(w Wire, a *Answer, p Protocol, apply func()) error {
	up, ok := w.(Upgrader)
	if !ok {
		return ErrCannotUpgrade
	}
	apply()
	if err := up.Upgrade(a, p); err != ErrLate {
		return err
	}
	return nil
}

// A Protocol serves a connection after its upgrade. The adapter calls its methods, except those that say otherwise, on the
// goroutine that owns the connection, and never two at once:
//
//	Open ─▶ Data, Output ─▶ (Data, Pending, Timeout, Output)* ─▶ End or Evict, perhaps ─▶ Closed
//
// After each call of Data, Timeout or Evict, the adapter calls Output and sends the result.
type Protocol interface {
	// Name is the value of the field Upgrade.
	Name() string

	// Open is called once, first. The peer is valid until Closed.
	Open(Peer)

	// Data handles input, which is borrowed until it returns and may be changed, and returns how many bytes it has consumed.
	// The rest is passed again, before later input. Data is also called without new input: once after Open, after Peer.Wake,
	// after the peer has accepted pending output, and when the server begins to drain.
	//
	// On an event loop it runs code of the application between Turn.EnterPart and Leave. If Leave is false, that code has
	// blocked, and the connection belongs to another goroutine: Data must return at once.
	Data(t Turn, in []byte) (consumed int)

	// Output appends all bytes to send. If last is set, the adapter closes the connection when they are sent.
	Output(out []byte) (_ []byte, last bool)

	// Unsent is called after Output: the peer has not accepted the last n bytes. The protocol may take back some of them, from the
	// end, to append them again later: Data and Output are called when the peer accepts more. The adapter holds the others.
	Unsent(n int) (takenBack int)

	// Pending is told that the peer has not yet accepted some bytes of Output, which is not called until it has. Where Data is
	// not called then, Pending(0) is, and reports whether Data must be.
	Pending(bytes int64) bool

	// End is called when the peer will send no more. The connection is closed afterwards.
	End()

	// Timeout is called when the deadline has passed, which is then clear. Unless it sets a deadline, the connection is closed.
	Timeout(t Turn)

	// Evict is called when others need the memory that the connection holds. The connection is closed afterwards.
	Evict()

	// Blocked is called on any goroutine while application code runs that has lost its event loop. now is Turn.Now.
	Blocked(now int64)

	// Run runs the job of Peer.Submit on a goroutine that may block. Overdue is called in its place if the job has waited too
	// long in an overload; it may be called on any goroutine and must not block.
	Run()
	Overdue()

	// Abandoned is called, on any goroutine, after application code ended in a panic, which was logged, or in runtime.Goexit.
	Abandoned()

	// Closed is called once, last, when the connection is closed. It must be quick.
	Closed()
}

// A Turn is one call of a Protocol by its adapter. All times are in nanoseconds on the adapter's clock.
type Turn interface {
	Waiting
	Clock() int64     // the present time; Now is the time of the turn
	VisitTime() int64 // how long the turn should last, if Inline
	Inline() bool     // the goroutine drives an event loop
	Draining() bool   // the server drains
	Spread() int64    // the time over which connections should end in a drain, so that their clients do not return at once

	// EnterPart and Leave enclose code that may block. consumed is the length of the input that the code is about, from the
	// beginning of that of Data.
	EnterPart(consumed int)
	Leave() bool

	// Watch is called before code that may block, and Waited after it, to detect short waits.
	Watch(closely bool)
	Waited() bool

	Again() // call Data again after the output is sent
	Later() // call Data again after other connections have had their turn
}

// A Peer is the connection of a Protocol.
type Peer interface {
	// Wake schedules a call of Data, then Output. Any goroutine may call it.
	Wake()

	// Loop returns the event loop that serves the connection, nil if there is none. Any goroutine may call it.
	Loop() Loop

	// WakeHere is Wake for a function that the Loop calls.
	WakeHere()

	// Prompt reports whether each call of Data is followed by one of Output even if the code that Data runs does not return:
	// output that is made during Data then needs no Wake. Otherwise Wake sends output at once.
	Prompt() bool

	// SetDeadline replaces the deadline, in nanoseconds from now; 0 is none. Only the owner of the connection calls it.
	SetDeadline(after int64)

	// Pause stops or continues the reading of input. Only the owner calls it.
	Pause(bool)

	// Reserve charges n bytes of a message from the client, unless the server has no memory for them. Only the owner calls it.
	// Release releases them. Any goroutine may call it.
	Reserve(n int64) bool
	Release(n int64)

	// Charge charges n bytes of output that has to wait, or with a negative n ends their charge. Any goroutine may call it while
	// output is pending.
	Charge(n int64)

	// Submit has Protocol.Run called on another goroutine. Only the owner calls it, during t.
	Submit(t Turn)

	// Restarting reports whether the server drains because a new process serves in its place. Any goroutine may call it.
	Restarting() bool

	// Log returns the server's logger. Any goroutine may call it.
	Log() *slog.Logger
}

// A Loop is an event loop, with one value for all its connections.
type Loop interface {
	// Call has the loop call f soon. f must be quick and must not block. Any goroutine may call it. It reports false if the loop
	// has ended.
	Call(f func()) bool
}

// A Feed has messages for a connection, beside the protocol's own output. The protocol calls it as the adapter calls the
// protocol's Output and Unsent, one call at a time; Hold may be called together with others.
type Feed interface {
	// Cut reports whether the connection must be closed, since it takes the messages too slowly.
	Cut() bool

	// Rest appends the rest of a message of which the peer has the beginning. The protocol calls it before own output.
	Rest(out []byte) []byte

	// Append appends messages, after own output. more reports that there are others, for a call after the next Wake.
	Append(out []byte) (_ []byte, more bool)

	// Unsent is Protocol.Unsent for the bytes of Append.
	Unsent(n int) (takenBack int)

	// Hold reports that the peer accepts no more before the next call of Append.
	Hold()

	// Close ends the feed.
	Close()
}

// A Streamer is a Wire whose connection can be passed on after the head of its last response.
type Streamer interface {
	// OpenStream sends the head of a, which apply completes. The body follows from p, until it closes the connection. It keeps nothing of
	// a. Before apply is called, the error may be ErrCannotUpgrade. The error is ErrLate if the request was answered without its action.
	OpenStream(a *Answer, p Protocol, apply func()) error
}

// An EventStream is the Protocol of an event stream without input. Where the connection cannot be passed on, Serve is called in
// place of all its other methods.
type EventStream interface {
	Protocol

	// Serve sends the stream until it ends, or ctx, which ends with the client. The stream should end when draining is closed.
	Serve(ctx context.Context, draining <-chan struct{}, w EventWriter) error
}

// An EventWriter sends what was written at each call of Flush.
type EventWriter interface {
	io.Writer
	Flush() error
}
