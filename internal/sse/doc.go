// Package sse has what event streams are made of: events as bytes (encode.go), what sends them and signs of
// life (send.go), and who is told when the server is about to end (drain.go).
package sse
