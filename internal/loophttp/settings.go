package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Settings are what a Service needs to know.
type Settings struct {
	Server        *exchange.Server
	MaxConcurrent int   // actions that may wait at once
	SecureMemory  int64 // bytes, beside the budget, for TLS; 0: no bound

	// OnQuiet is given the function that lets go of buffers kept for later, and returns
	// how many bytes that is. It is to be called when the process has become quiet.
	OnQuiet func(letGo func() int64)
}

// Stats are what the event loops know.
type Stats struct {
	Connections  int   // open
	PerLoop      []int // of these
	Accepted     uint64
	AcceptPauses uint64        // times accepting has paused
	AcceptPaused time.Duration // for how long it has; 0: it has not
	SecureBytes  int64         // what TLS is reckoned to take
	ReadPaused   int           // connections that are not read until their answers are taken

	Away        int    // connections with a goroutine of their own
	Working     int    // of these, those that count against MaxConcurrent
	MostWorking int    // that may
	Queued      int    // requests that wait for a worker
	Takeovers   uint64 // event loops taken from an action that blocked

	// How long requests have waited: lately, and the longest ever.
	LoopWait, LoopWaitMost   time.Duration
	QueueWait, QueueWaitMost time.Duration
}
