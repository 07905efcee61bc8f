package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Settings configure a Service.
type Settings struct {
	Server        *exchange.Server
	MaxConcurrent int   // maximum number of waiting actions
	SecureMemory  int64 // bytes for TLS outside the budget; 0: unlimited

	// OnQuiet gets the function that frees cached buffers and returns their size in bytes. It is to be called when the process
	// is idle.
	OnQuiet func(dropFree func() int64)
}

// Stats are the statistics of the event loops.
type Stats struct {
	Connections  int   // number of open connections
	PerLoop      []int // Connections by loop
	Accepted     uint64
	AcceptPauses uint64        // number of times that accepting paused
	AcceptPaused time.Duration // total duration of the pauses
	SecureBytes  int64         // estimated memory of TLS, in bytes
	ReadPaused   int           // connections that are not read until their pending output is sent

	Away        int    // connections with a goroutine of their own
	Working     int    // connections of Away that count against MaxConcurrent
	MostWorking int    // MaxConcurrent
	Queued      int    // requests that wait for a worker
	Takeovers   uint64 // takeovers of event loops from blocked actions

	// LoopWait is the recent waiting time of requests, and LoopWaitMost the longest so far.
	LoopWait, LoopWaitMost   time.Duration
	QueueWait, QueueWaitMost time.Duration
}
