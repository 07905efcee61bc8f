// Package memory limits the memory that clients make a server hold, and divides it among them. It does not depend on connections
// or HTTP.
//
// A [Budget] has a bound in bytes. A holder, which is a connection, a stream or a request, has an [Account] while the server
// holds memory for it. The holder calls Reserve before it fills memory, Force for memory that exists already, Release when memory
// is free again, and Evicted to learn whether other holders need its memory. It reports the progress of its peer by Progress,
// BeginResponse, EndResponse and SetWorking. A small holder holds at most [Small], which is 80 KiB; a large holder holds more.
// The rules:
//
//  1. Small is safe. A holder that is small with the requested bytes never waits. If its memory does not fit, other holders are
//     evicted at once, by rule 4. If none can be evicted, the bound is exceeded by up to an eighth. Beyond that the request is
//     refused.
//  2. A larger request is granted if it fits and no earlier request waits. All large holders together leave a quarter of the bound
//     free, unless there is only one, which may fill the bound. Some requests cannot wait, such as a request for the values of a
//     body that has arrived or for the next part of a message. Such a request is granted if it fits: it passes the queue, until
//     the first request of the queue has been the first for a quarter of MaxWait.
//  3. Otherwise the request waits in one queue, first in, first out. It is refused after MaxWait, 10 seconds by default. It is
//     tried again when memory is released. The first request of the queue evicts slow large holders, and is granted their memory
//     when they have released it, which may be at once. If its own holder is slow and the costliest of them, the request is
//     refused. If large answers were mostly not read lately, the first request also evicts holders whose answers are read, by
//     rule 4. If it has waited for a second, and all other large holders wait, too, it evicts the last holder of the queue, and
//     more of them until it fits. A request for more than the bound is refused at once.
//  4. When the memory held exceeds the bound, holders are evicted in this order: large holders before small ones; among these,
//     slow holders, then those that send at a good rate, then those that read an answer at a good rate; among these, the costliest
//     first. The cost is bytes × time until they are expected to be free, at most 10 seconds. An excess of up to an eighth of the
//     bound is permitted instead of the eviction of a large holder that reads its answer at a good rate, or of a large holder that
//     sends at a good rate and holds less than the excess. A holder is not evicted while the server works for it. One answer may
//     be larger than the bound.
//  5. A cap of a connection or an address is a bound of the same kind for its own holders. A request of an address at its cap waits
//     for, and evicts, only holders of that address, and delays no other address. A request of a connection at its cap is refused.
//
// A holder is slow if its peer needs more than 4 seconds for the rest at its rate so far, or has been silent for more than a second.
// The time in which the holder waits for memory, or the server works for it, does not count. In its first second a holder has a
// good rate. The memory of an answer is free when all of its buffer has been read.
//
// Large answers are mostly not read if, in the last 10 seconds, the bytes of those whose slow peers were evicted exceed the bytes of
// those that were read by three eighths of the bound.
//
// Caches are the part of the budget that is dropped first, see [Kept].
//
// Invariant: held − cached − ending ≤ bound after each call, as long as a holder can be evicted; an eighth more if only holders
// that make progress are left, and with one answer larger than the bound not counted. Ending is the memory of holders that are
// being evicted, until their loops or goroutines have released it. Until then it is free for small holders only.
//
// The lock of a Budget is acquired before those of its accounts.
//
//	budget.go   the memory held, by use
//	kept.go     caches
//	account.go  one holder
//	peer.go     the progress of its peer
//	reserve.go  requests for memory, and the queue
//	turn.go     whether large answers are read
//	evict.go    the choice of holders to evict
//	caps.go     limits by connection and by address
package memory
