//go:build linux

package loophttp

import "github.com/dunlinhttp/dunlin/internal/request"

// A reply is the state of the answer to a request. wire.mu guards it.
type reply struct {
	sending sending
	begunAt int32 // offset of a begun answer in the driver's output
	minor   uint8 // the minor version of HTTP/1 that the client understands
	closing bool  // the connection closes after the answer
	duplex  bool  // the action reads and writes at the same time
}

// A sending is the state of an answer that is sent in pieces: see the package's documentation.
type sending uint8

const (
	unbegun sending = iota
	begun
	flushed
	hijacked
)

type sendingEvent uint8

const (
	begin sendingEvent = iota
	flush
	hijack
	sendingEvents
)

var sendings = [...][sendingEvents]sending{
	unbegun:  {begin: begun, hijack: hijacked},
	begun:    {flush: flushed, hijack: hijacked},
	flushed:  {flush: flushed, hijack: hijacked},
	hijacked: {flush: hijacked},
}

// on makes the transition of an event.
func (s *sending) on(e sendingEvent) { *s = request.Next(*s, sendings[*s][e], e) }

// cut closes the connection without an answer. The answers to earlier requests are still sent.
func (x *wire) cut() {
	switch x.sending {
	case unbegun:
		x.Conn.CloseAfterFlush()
	case begun:
		x.d.Out = x.d.Out[:x.begunAt]
		x.Conn.CloseAfterFlush()
	default:
		x.Conn.Close() // the client must not take a partial answer for a complete one
	}
}
