// Package http1 turns bytes into HTTP/1.x messages and messages into bytes
// (RFC 9110 and RFC 9112). It does no I/O, starts no goroutine and keeps no
// global state that changes.
//
// Reading comes in three layers:
//
//   - tables.go and scan.go: stateless functions on []byte that find the end
//     of a token, a value or a field line.
//   - parse.go (request head) and chunked.go (chunked body): resumable state
//     machines. Running out of bytes is an outcome of its own, never an error.
//     plain.go reads complete ordinary heads in one pass.
//   - fields.go, target.go, host.go and trailer.go: the meaning of
//     framing fields, the request target, the Host field and trailers.
//
// Writing is append-style: response.go, status.go, date.go and chunkenc.go. validate.go
// checks fields before they are written.
//
// Two rules hold for everything that is read:
//
//   - Nothing about framing is guessed. A head that two implementations could
//     cut at different places is an [Error], and the connection must close.
//   - The outcome depends on the bytes alone, not on how they arrived. Every
//     split of an input gives the same messages and the same error, and the
//     work is linear in the input even when it comes a byte at a time.
package http1
