// Package sse encodes event streams (encode.go), sends events and heartbeats (send.go), and notifies open streams of a
// drain (drain.go).
package sse
