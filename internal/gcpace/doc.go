// Package gcpace keeps a process below its memory limit: it finds the limit, and paces the garbage collector.
//
// # What a limit is spent on
//
//	limit ─ the program itself (mapped code and data) ─▶ room, which Go manages
//	      └ of a control group also the kernel's own
//	room ── a quarter, at most 256 MB ─▶ the budget for clients, see package memory
//	     └─ the rest ─▶ what actions allocate, the runtime, garbage
//
// The limit is Config.MemoryLimit, unless a control group leaves less; else the control group's; else GOMEMLIMIT, which does not
// count the program. A third of a control group's limit, at most 64 MB, is left to the kernel, whose sockets and files count there.
// The room is measured anew after each collection, since more or less of the program is in memory. The number of workers is one for
// each 256 KB of the room, unless Config.MaxConcurrent is set.
//
// # Pace
//
// After a collection GOGC is chosen such that the heap grows as far as the room allows ([Collector]). The runtime's memory limit is
// a backstop: it is passed while a collection waits for a processor, so it is set 1 to 4 MB below the room, and 4 MB higher for what
// the runtime counts but hardly touches. Without a limit, the heap of a server with event loops may grow to 16 MB, or twice its
// live part; with net/http alone to 7 MB, where Go's own is 4. Ten seconds after the last collection, when the process is quiet,
// buffers kept for later are dropped and one more collection returns memory to the system. Then no timer is set.
//
//	pace.go        the limit of a process, and what follows from it
//	memorylimit.go finding it
//	kernelfiles_*.go program.go  what the kernel says of the limit and of the process
//	collector.go   choosing GOGC
//	settings.go    the settings of the runtime, and which of them are the program's own
//	lows.go        how much of the heap is really live
package gcpace
