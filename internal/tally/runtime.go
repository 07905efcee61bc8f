package tally

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Runtime holds statistics of the Go runtime.
type Runtime struct {
	Goroutines  int
	HeapLive    int64  // live bytes after the latest collection
	Collections uint64 // since the start of the process; so are GCPauses and GCShare
	GCPauses    time.Duration
	GCShare     float64 // share of the available CPU time, up to the latest collection
}

// ReadRuntime returns the current statistics.
func ReadRuntime() Runtime {
	samples := [...]metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(samples[:])
	s := Runtime{
		Goroutines:  runtime.NumGoroutine(),
		HeapLive:    int64(samples[0].Value.Uint64()),
		Collections: samples[1].Value.Uint64(),
	}
	if all := samples[3].Value.Float64(); all > 0 {
		s.GCShare = samples[2].Value.Float64() / all
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	s.GCPauses = gc.PauseTotal
	return s
}
