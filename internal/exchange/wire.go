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

// A Wire is an adapter's view of one request at a time, and the connection to its client. All strings it returns are safe,
// except where a method says otherwise. It is used by one goroutine at a time, which runs the action, unless a method
// says otherwise.
type Wire interface {
	Host() string
	Header(name string) (value string, ok bool)
	Headers(yield func(name, value string) bool)
	// List returns all values of the named header joined by its Separator, as a view that is valid until the message ends.
	List(name string) string
	// Glance returns in one call the data that common middleware needs from each request: whether the named header has a value,
	// unless name is ""; List of Origin; and, if client is set, the client's IPv4 address as a number and the time when the
	// current turn of the event loop began, see Nanos. ip is negative if it was not requested, is not IPv4, or takes longer to
	// find.
	Glance(name string, client bool) (named bool, origin string, ip, now int64)
	// Among returns which of the names may be names of the request's fields, in one pass over all fields; List returns the
	// values. Connection is included if it may name other fields.
	Among(*Names) (set uint64)
	ContentLength() int64 // in bytes, -1 if unknown before the body is read
	// Received returns the body, borrowed until the message ends, if it has arrived completely; otherwise it must be read.
	Received() (body []byte, whole bool)
	// Body returns the reader of the body, which fails with a 413 *ProblemDetails after limit bytes.
	Body(limit int64) io.Reader
	// RefuseBody declares that the body will not be read, so that the answer does not wait for it.
	RefuseBody()
	Remote() netip.AddrPort // the remote address of the connection
	Version() string        // of HTTP, as received: 1.0, 1.1, 2; "" if unknown
	// Spelling returns the path as the client sent it if it has escapes, most of which State.Path does not have, or if an
	// empty query follows it: then the question mark is included. Otherwise it returns "".
	Spelling() string
	// Now is time.Now, or on an event loop the time when the current turn began.
	Now() time.Time
	Secure() bool // the connection is encrypted
	// TLS returns the state of the connection's TLS handshake, nil without encryption.
	TLS() *tls.ConnectionState
	Context() context.Context
	// Endable is Context with a function that cancels it before the request ends.
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
	// CloseAfter closes the connection after the answer. After Begin, this also informs the client that the body is shorter
	// than announced, if the protocol has no other means.
	CloseAfter()
	// OmitDate omits Date from the answer.
	OmitDate()
	// Abandoned records that the action ends its goroutine.
	Abandoned()
	// Account returns the account for memory held for the request, or nil if the request was answered without its action.
	// ReleaseAccount ends its use.
	Account() *memory.Account
	ReleaseAccount(*memory.Account)
	// MayWait is called before the action waits for something other than its wire, which does not count against
	// Config.Limits.MaxConcurrent, and Waited afterwards.
	MayWait()
	Waited()
}

// A Watcher is a Wire that can distinguish a client that has gone from a client that has finished sending and waits for its
// answer.
type Watcher interface {
	// Lost reports whether the client has visibly gone. left is the number of unread bytes of the body, -1 if unknown. It must
	// not wait.
	Lost(left int64) bool
}

// A Sink writes an answer whose sending has begun.
type Sink interface {
	io.Writer
	// ReadFrom copies all of src to the body. If the system supports it, a file is sent without passing through the process.
	io.ReaderFrom
	Flush() error
	// Hijack passes on the connection, with the input read after the request.
	Hijack() (net.Conn, *bufio.ReadWriter, error)
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	EnableFullDuplex() error
	// Finish ends the body. The trailers are in the form of a handler's header map: names that were not declared have
	// http.TrailerPrefix.
	Finish(trailers http.Header)
}
