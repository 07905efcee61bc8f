// Package gcpace keeps a process below its memory limit: it finds the limit, and paces the garbage collector.
//
// # Use of the limit
//
//	limit ─ the program itself (mapped code and data) ─▶ room, which Go manages
//	      └ in a control group also the kernel's part
//	room ── a quarter, at most 256 MB ─▶ the budget for clients, see package memory
//	     └─ the rest ─▶ allocations of actions, the runtime, garbage
//
// The limit is Config.Limits.Memory, unless a control group leaves less. Without that setting it is the limit of the control
// group, and without a control group GOMEMLIMIT, which does not include the program itself. A third of a control group's limit,
// at most 64 MB, is left to the kernel, since sockets and files count against that limit. The room is measured again after each
// collection, since the resident size of the program changes. There is one worker per 256 KB of the room, unless
// Config.Limits.MaxConcurrent is set.
//
// # Pace
//
// After each collection, GOGC is set so that the heap grows as far as the room allows ([Collector]). The runtime's memory
// limit is a backstop. Allocation exceeds it while a collection waits for a processor, so it is set 1 to 4 MB below the
// room, plus 4 MB for memory that the runtime counts but rarely touches. Without a limit, the heap of a server with event
// loops may grow to 16 MB or twice its live part; with net/http alone Go's settings stay. Ten seconds after the last collection
// the process is quiet: buffers kept for later are released, and one more collection returns memory to the system. Then no
// timer is set.
//
//	pace.go        the limit of a process, and its consequences
//	memorylimit.go finding the limit
//	program.go     the size of the program
//	collector.go   choosing GOGC
//	settings.go    the settings of the runtime, and their owner
//	lows.go        the live part of the heap
package gcpace
