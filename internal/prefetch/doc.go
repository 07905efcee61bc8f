// Package prefetch asks the processor for memory that is needed soon. What serves many connections in
// turn finds the memory of each out of the caches, and would wait for one piece of it after the other.
package prefetch

// LineSize is how many bytes one line has, on nearly all processors.
const LineSize = 64

// Lines returns how many lines so many bytes lie in at most.
func Lines(size uintptr) int { return int((size+LineSize-1)/LineSize) + 1 }
