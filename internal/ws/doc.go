// Package ws translates between bytes and the frames of WebSocket (RFC 6455) and of its compression (RFC 7692). It does no I/O
// and keeps no connection: its functions take and return slices.
//
//	frame.go      frame headers, masks                 utf8.go    the check of text that arrives in pieces
//	close.go      close codes and their payload        deflate.go compressed messages
//	handshake.go  the opening handshake, extensions
//
// A header that is not complete yet is not an error: its length is then 0. Errors of the peer are of type [Error], which has the
// close code to answer with.
package ws
