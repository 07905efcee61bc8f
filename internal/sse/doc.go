// Package sse has what event streams are made of: events as bytes (encode.go), and who is told
// when the server is about to end (drain.go).
package sse
