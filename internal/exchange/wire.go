package exchange

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A Wire is an adapter's view of one request at a time, and of the connection to its client. Strings that it returns may be kept,
// unless the comment of a method says otherwise. One goroutine at a time uses it, the one that runs the action.
type Wire interface {
	Host() string
	Header(name string) (value string, ok bool)
	Headers(yield func(name, value string) bool)
	// List returns all values of the named header joined by its Separator, as a view that is valid until the message ends.
	List(name string) string
	// Glance returns in one call the data that common middleware needs from each request. named reports whether the named header
	// has a value; it is false if name is "". origin is the result of List for Origin. If client is set, ip is the client's IPv4
	// address as a number, and now is the time when the current turn of the event loop began, as for Nanos. ip is negative if
	// client is false, if the address is not IPv4, or if finding it takes longer.
	Glance(name string, client bool) (named bool, origin string, ip, now int64)
	// Among returns the set of those names that the request may have as fields, in one pass over all fields. The caller uses List
	// to get the values. Connection is in the set if its value may name other fields.
	Among(*Names) (set uint64)
	ContentLength() int64 // length of the body in bytes, -1 if unknown
	// Received returns the body, borrowed until the request ends, if it has arrived completely. Otherwise whole is false, and the
	// caller must read from Body.
	Received() (body []byte, whole bool)
	// Body returns the reader of the body, which fails with a 413 *ProblemDetails after limit bytes.
	Body(limit int64) io.Reader
	// RefuseBody declares that the body will not be read, so that the answer is sent without waiting for the body.
	RefuseBody()
	Remote() netip.AddrPort // the remote address of the connection
	Version() string        // of HTTP, as received: 1.0, 1.1, 2; "" if unknown
	// Spelling returns the path as the client sent it, if State.Path and State.Query do not show that: the path has escapes, or
	// an empty query follows it, whose question mark is included. Otherwise it returns "".
	Spelling() string
	// Now is time.Now, or on an event loop the time when the current turn began.
	Now() time.Time
	Secure() bool // the connection is encrypted
	// TLS returns the state of the connection's TLS handshake, nil without encryption.
	TLS() *tls.ConnectionState
	Context() context.Context
	// Endable is Context with a function that cancels the context before the request ends.
	Endable() (context.Context, context.CancelFunc)
	// StdRequest returns the request in the form of net/http.
	StdRequest() *http.Request
	// Begin sends the head of resp and returns the sink for the body. length is the length of the body in bytes, -1 if
	// unknown. Begin does not keep resp.
	Begin(resp *Answer, length int64) Sink
	// Sink returns the sink without sending a head.
	Sink() Sink
	// Interim sends an interim response.
	Interim(status int, h http.Header)
	// CloseAfter closes the connection after the answer. If it is called after Begin, the close also shows the client that the
	// body is shorter than announced, if the protocol has no other means.
	CloseAfter()
	// OmitDate omits Date from the answer.
	OmitDate()
	// Abandoned is called when the action ends its goroutine (runtime.Goexit).
	Abandoned()
	// Account returns the account for memory held for the request, or nil if the request was answered without its action.
	// ReleaseAccount ends its use.
	Account() *memory.Account
	ReleaseAccount(*memory.Account)
	// MayWait is called before the pipeline waits for something other than the wire, such as memory, and Waited afterwards. In
	// between the request does not count against Config.Limits.MaxConcurrent.
	MayWait()
	Waited()
}

// A Watcher is a Wire that can distinguish a client that has closed the connection from a client that has finished sending and
// waits for its answer.
type Watcher interface {
	// Lost reports whether the client is known to have closed the connection. left is the number of unread bytes of the body, -1
	// if unknown. Lost must not wait.
	Lost(left int64) bool
}

// A Sink writes the body of an answer whose head was sent or is being sent.
type Sink interface {
	io.Writer
	// ReadFrom copies all of src to the body. If the system supports it, a file is sent without passing through the process.
	io.ReaderFrom
	Flush() error
	// Hijack gives the connection to the caller, with the input that was read after the request.
	Hijack() (net.Conn, *bufio.ReadWriter, error)
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	EnableFullDuplex() error
	// Finish ends the body. The trailers are in the form of a handler's header map: names that were not declared have
	// http.TrailerPrefix.
	Finish(trailers http.Header)
}
