package exchange

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// An Upgrader is a Wire whose connection can switch to another protocol (RFC 9110, section 7.8).
type Upgrader interface {
	// Upgrade sends the head of a, a 101 response, with the fields Connection and Upgrade. When the request has ended, it passes
	// the connection to p. It does not keep a. The error is ErrLate if the request was answered without its action.
	Upgrade(a *Answer, p Protocol) error
}

// ErrCannotUpgrade is the error for a connection that cannot switch protocols: over HTTP/2 or HTTP/1.0, with a body that has
// not arrived, or with a writer of standard middleware that does not give up the connection.
var ErrCannotUpgrade = errors.New("upgrade: the connection cannot switch protocols")

// Upgrade switches the connection of w to p. It calls apply, which completes a, and sends the head of a. It returns nil if the
// request was answered without its action. The error is ErrCannotUpgrade if w is not an Upgrader; then apply is not called.
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

// A Protocol serves a connection after its upgrade. Unless the comment of a method says otherwise, the adapter calls it on the
// goroutine that owns the connection, one method at a time:
//
//	Open ─▶ Data, Output ─▶ (Data, Pending, Timeout, Output)* ─▶ End or Evict, perhaps ─▶ Closed
//
// After each call of Data, Timeout or Evict, the adapter calls Output and sends the result.
type Protocol interface {
	// Name is the value of the field Upgrade.
	Name() string

	// Open is called once, before the methods below. The peer is valid until Closed.
	Open(Peer)

	// Data handles input and returns the number of bytes that it has consumed. in is borrowed until Data returns; Data may change
	// its bytes. The rest is passed again, before later input. Data is also called without new input: once after Open, after
	// Peer.Wake, after the peer has accepted pending output, and when the server begins to drain.
	//
	// On an event loop, Data must call application code between Turn.EnterPart and Turn.Leave. If Leave returns false, that code
	// has blocked, and the connection belongs to another goroutine: Data must return at once.
	Data(t Turn, in []byte) (consumed int)

	// Output appends all bytes to send to out. If last is true, the adapter closes the connection when they are sent.
	Output(out []byte) (_ []byte, last bool)

	// Unsent is called after Output: the socket has not accepted the last n bytes. The protocol may take back some of these
	// bytes, from the end; Unsent returns their number. Output must append them again later: Data and Output are called when the
	// socket accepts more. The adapter keeps the other bytes as pending output.
	Unsent(n int) (takenBack int)

	// Pending is called with the number of bytes of Output that the peer has not accepted yet. Output is not called again until
	// the peer has accepted them. An adapter that does not call Data then calls Pending(0), whose result reports whether Data
	// must be called.
	Pending(bytes int64) bool

	// End is called when the peer will send no more. The connection is closed afterwards.
	End()

	// Timeout is called when the deadline has passed. If it does not set a new deadline, the connection is closed.
	Timeout(t Turn)

	// Evict is called when other connections need the memory that this connection holds. The connection is closed afterwards.
	Evict()

	// Blocked is called when application code has lost its event loop. The code still runs. now is the time of Turn.Now. Blocked
	// may be called on any goroutine.
	Blocked(now int64)

	// Run is called because of Peer.Submit, on a goroutine that may block. Overdue is called instead of Run if the job has waited
	// too long in an overload. Overdue may be called on any goroutine and must not block.
	Run()
	Overdue()

	// Abandoned is called, on any goroutine, after application code has ended in a panic or in runtime.Goexit. The adapter has
	// logged the panic.
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
	Spread() int64    // the time over which connections should end in a drain, so that not all clients reconnect at once

	// EnterPart and Leave enclose code that may block. consumed is the number of bytes of Data's input that are consumed already.
	// Leave returns false if the connection belongs to another goroutine.
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
	// Wake schedules a call of Data, then of Output. Safe for concurrent use.
	Wake()

	// Loop returns the event loop that serves the connection, nil if there is none. Safe for concurrent use.
	Loop() Loop

	// WakeHere is Wake for a function that the Loop calls because of Loop.Call.
	WakeHere()

	// Prompt reports whether the adapter calls Output soon after Data even if the application code that Data calls does not
	// return. Then output that is made during Data needs no Wake. If Prompt is false, Wake sends output at once.
	Prompt() bool

	// SetDeadline replaces the deadline, in nanoseconds from now; 0 means no deadline. Only the owner of the connection may call
	// it.
	SetDeadline(after int64)

	// Pause stops the reading of input, or with false continues it. Only the owner of the connection may call it.
	Pause(bool)

	// Reserve charges n bytes of a message from the client. It returns false if the server has no memory for them. Only the owner
	// of the connection may call it. Release ends the charge. Any goroutine may call Release.
	Reserve(n int64) bool
	Release(n int64)

	// Charge charges n bytes of output that has to wait. A negative n ends the charge. Any goroutine may call it while output is
	// pending.
	Charge(n int64)

	// Submit requests a call of Protocol.Run on another goroutine. Only the owner of the connection may call it, during t.
	Submit(t Turn)

	// Restarting reports whether the server drains because a new process serves in its place. Safe for concurrent use.
	Restarting() bool

	// Log returns the server's logger. Safe for concurrent use.
	Log() *slog.Logger
}

// A Loop is an event loop. All connections of a loop return the same value, so that values can be compared.
type Loop interface {
	// Call makes the loop call f soon. f must be quick and must not block. Call returns false if the loop has ended. Safe for
	// concurrent use.
	Call(f func()) bool
}

// A Feed supplies messages for a connection, in addition to the output of the protocol. The protocol calls the methods of the
// Feed in its own methods Output and Unsent, one at a time. Only Hold may be called at the same time as other methods.
type Feed interface {
	// Cut reports whether the connection must be closed, because the client receives the messages too slowly.
	Cut() bool

	// Rest appends the rest of a message that was sent in part. The protocol calls it before it appends output of its own.
	Rest(out []byte) []byte

	// Append appends messages. The protocol calls it after it has appended output of its own. more reports whether there are more
	// messages, for a call after the next Wake.
	Append(out []byte) (_ []byte, more bool)

	// Unsent is Protocol.Unsent for the bytes of Append.
	Unsent(n int) (takenBack int)

	// Hold informs the feed that the peer accepts no more output before the next call of Append.
	Hold()

	// Close ends the feed.
	Close()
}

// A Streamer is a Wire whose connection can be passed on after the head of its last response.
type Streamer interface {
	// OpenStream calls apply, which completes a, and sends the head of a. Then it passes the connection to p, whose output is the
	// body, until p closes the connection. OpenStream keeps nothing of a. The error is ErrCannotUpgrade if the connection cannot
	// be passed on; then apply was not called. The error is ErrLate if the request was answered without its action.
	OpenStream(a *Answer, p Protocol, apply func()) error
}

// An EventStream is the Protocol of an event stream, which has no input. If the connection cannot be passed on, the pipeline
// calls Serve instead of all other methods.
type EventStream interface {
	Protocol

	// Serve sends the stream to w. It returns when the stream has ended or when ctx is done, which is when the client has gone.
	// The stream should end when draining is closed.
	Serve(ctx context.Context, draining <-chan struct{}, w EventWriter) error
}

// An EventWriter sends the written bytes at each call of Flush.
type EventWriter interface {
	io.Writer
	Flush() error
}
