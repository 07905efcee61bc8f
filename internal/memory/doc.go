// Package memory divides the memory that clients make a server hold. It knows neither connections nor HTTP.
//
// A [Budget] has a bound in bytes. A holder, which is a connection, a stream or a request, has an [Account] while the server
// holds memory for it. It calls Reserve before it fills memory, Force for memory that exists already, Release when memory is
// free again, and Evicted to learn that others need its memory. It reports the progress of its peer by Moved, Answers,
// Answered and Working. The rules:
//
//  1. Small is safe. A holder of at most [Small] bytes, with the request included, never waits. If its memory does not fit,
//     other holders are evicted at once, by rule 4. If none can be evicted, the bound is exceeded by up to an eighth; beyond
//     that the request is refused.
//  2. A larger request is granted if it fits and no earlier request waits. Holders of more than Small leave a quarter of the
//     bound free for the others, unless there is only one of them. A request that cannot wait, such as one for the values of a
//     body that has arrived, is granted if it fits.
//  3. Otherwise the request waits in one queue, first in, first out, for at most 10 seconds. The first of the queue evicts slow
//     holders of more than Small, and is refused if it is the costliest of them itself. If large answers were mostly not read
//     lately, it does not wait for others to be read: it evicts them by rule 4. After a second without other memory it evicts
//     requests that wait, the last one first. A request that can never fit is refused at once.
//  4. When the memory held exceeds the bound, holders are evicted: first those of more than Small, then the others; of these
//     the slow ones first, then those that send at a good rate, then those that read an answer at a good rate; of these the
//     costliest first. The cost is bytes × time until they are expected to be free, at most 10 seconds. Rather than evict a
//     holder of more than Small that reads its answer at a good rate, the bound is exceeded by an eighth; also rather than
//     evict a sender whose memory does not suffice. A holder is not evicted while the server works for it, and one answer may be
//     larger than the bound.
//  5. A cap of a connection or an address is a bound of the same kind over its own holders. An address at its cap waits and
//     evicts only among its own holders, and delays no other address. A connection at its cap is refused.
//
// A holder is slow if the rest is not expected within 4 seconds at its rate so far, or its peer has been silent for more than a
// second. In its first second it has a good rate. An answer of more than Small is not read if its slow peer is evicted. Such answers of
// the last 10 seconds are the majority if they exceed those that were read since by half of the part for large holders, in bytes.
//
// Caches are the part of the budget that is dropped first, see [Kept].
//
// Invariant: held − cached − ending ≤ bound after each call, as long as a holder can be evicted; an eighth more if only holders
// that make progress are left, and with one answer larger than the bound not counted. Ending is the memory of holders that are
// being evicted, until their loops or goroutines have released it. Only holders of at most Small get memory in its place before.
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
