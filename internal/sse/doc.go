// Package sse encodes events (encode.go), sends events and heartbeats (send.go), and notifies open streams when the
// server drains (drain.go).
package sse
