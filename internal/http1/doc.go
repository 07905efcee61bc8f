// Package http1 parses and writes HTTP/1.x messages (RFC 9110 and RFC 9112). It does no I/O, starts no goroutine and has no
// mutable global state.
//
// Reading has three layers:
//
//	tables.go, scan.go                          stateless functions on []byte that find the end of a token,
//	                                            a value or a field line
//	parse.go, chunked.go                        resumable state machines for request heads and chunked bodies;
//	                                            missing bytes are not an error. plain.go parses complete
//	                                            ordinary heads in one pass
//	fields.go, target.go, host.go, trailer.go   the meaning of framing fields, the request target, the Host
//	                                            field and trailers
//
// Writing appends to buffers: response.go, status.go, date.go and chunkenc.go. These functions do not check fields; see
// semantics.CheckField. limits.go has the limits on requests, least.go bounds on the rest of a chunked body, and shared.go the
// checks that HTTP/2 also uses.
//
// Two rules hold for all input:
//
//   - Framing is never guessed. If implementations could split a head in different places, the head is refused with an [Error], and
//     the connection must be closed.
//   - The outcome depends only on the bytes, not on how they arrived. However the input is divided, the messages and the errors are
//     the same, and the work is linear in the size of the input, even if it arrives byte by byte.
package http1
