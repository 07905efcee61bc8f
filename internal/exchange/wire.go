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

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A Wire is what an adapter offers of one request at a time, and of the way back to its
// client. Every string it returns is safe. It is used by one goroutine at a time, the
// one that runs the action, unless a method says otherwise.
type Wire interface {
	Host() string
	Header(name string) (value string, ok bool)
	Headers(yield func(name, value string) bool)
	// List returns all values of the named header joined by its Separator, as a
	// view: it is valid as long as the message.
	List(name string) string
	// Glance answers in one call what common middleware asks of each request: whether the named header, unless that is "", has
	// a value; List of Origin; and, if client is set, the client's IPv4 address as a number and when the present turn of the event
	// loop began, see Nanos. ip is negative if it was not asked for, is not IPv4, or takes longer to find.
	Glance(name string, client bool) (named bool, origin string, ip, now int64)
	// Among returns which of the names may be among the request's fields, after one look at all of them; List has the values.
	// Connection counts where it may name other fields.
	Among(*Names) (set uint64)
	ContentLength() int64 // in bytes, -1 when not known before the body is read
	// Received returns the body, borrowed until the message ends, when it is here in
	// whole; else it must be read.
	Received() (body []byte, whole bool)
	// Body returns the reader of the body, which fails with a *ProblemDetails
	// of 413 once more than limit bytes were read.
	Body(limit int64) io.Reader
	// RefuseBody says that the body will not be read: the answer does not wait
	// for it.
	RefuseBody()
	Remote() netip.AddrPort // of the connection's other end
	Version() string        // of HTTP, as the request came: 1.0, 1.1, 2; "" where nobody knows
	// Spelling returns the path as the client has spelt it where it has escapes, which State.Path mostly has not, or is followed by a question
	// mark and nothing, which is part of it then; else "".
	Spelling() string
	// Now is time.Now, or on an event loop the time when its present turn began.
	Now() time.Time
	Secure() bool // the connection is encrypted
	// TLS returns what was agreed in the handshake of the connection, nil if it is not encrypted.
	TLS() *tls.ConnectionState
	Context() context.Context
	// Endable is Context with a function that ends it before the request does.
	Endable() (context.Context, context.CancelFunc)
	// StdRequest returns the request as net/http knows it.
	StdRequest() *http.Request
	// Begin sends the head of resp and returns where the body goes; length is
	// that of the body in bytes, -1 when it is not known. It keeps nothing of
	// resp.
	Begin(resp *Answer, length int64) Sink
	// Sink returns the way to the connection without sending anything.
	Sink() Sink
	// Interim sends a response below 200.
	Interim(status int, h http.Header)
	// CloseAfter closes the connection after the answer. Behind Begin that is how a client is told that the body is
	// shorter than announced, where nothing else says so.
	CloseAfter()
	// OmitDate has the answer leave out Date.
	OmitDate()
	// Abandoned notes that the action ends its goroutine.
	Abandoned()
	// Account returns what is charged with memory that is held for the request; nil if it has
	// been answered without its action. ReleaseAccount ends its use.
	Account() *admission.Account
	ReleaseAccount(*admission.Account)
	// MayWait is called before the action waits for something else than its wire, which does not
	// count against Config.MaxConcurrent, and Waited after that.
	MayWait()
	Waited()
}

// A Watcher is a Wire that can tell a client which has gone from one which has finished sending,
// and waits for its answer.
type Watcher interface {
	// Lost reports whether the client is seen to have gone, of whose body so many bytes have not
	// been read (-1: unknown). It must not wait.
	Lost(left int64) bool
}

// A Sink is where an answer goes once it cannot be held back any longer.
type Sink interface {
	io.Writer
	// ReadFrom copies all of src to the body, a file without passing through
	// the process where the system can do that.
	io.ReaderFrom
	Flush() error
	// Hijack hands the connection over, with what was read beyond the request.
	Hijack() (net.Conn, *bufio.ReadWriter, error)
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	EnableFullDuplex() error
	// Finish ends the body. The trailers are as a handler left them in its
	// header map: names that were not declared have http.TrailerPrefix.
	Finish(trailers http.Header)
}
