// Package ws converts between bytes and the frames of WebSocket (RFC 6455) with compressed messages (RFC 7692). It does no I/O
// and keeps no connection: its functions have slices as parameters and results.
//
//	frame.go      frame headers, masks                 utf8.go    the check of text that arrives in pieces
//	close.go      close codes and their payload        deflate.go compressed messages
//	handshake.go  the opening handshake, extensions
//
// A header that is incomplete is not an error; its length is then 0. An error caused by the peer has the type [Error] with the
// close code to send.
package ws
