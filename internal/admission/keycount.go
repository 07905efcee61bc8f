package admission

import "maps"

// keyCount counts what there is for each key. It has an entry for a key only while the
// count is not zero. It has no lock.
type keyCount[K comparable] struct {
	counts map[K]int
	peak   int // entries there have been since counts was made
}

// keptEntries is how many entries there may have been in a map that is kept,
// however few there are now: maps do not shrink.
const keptEntries = 256

// take counts one more for key, and reports false if it has most already.
func (h *keyCount[K]) take(key K, most int) bool {
	n := h.counts[key]
	if n >= most {
		return false
	}
	if h.counts == nil {
		h.counts = make(map[K]int)
	}
	h.counts[key] = n + 1
	h.peak = max(h.peak, len(h.counts))
	return true
}

// release takes back a take that returned true.
func (h *keyCount[K]) release(key K) {
	if n := h.counts[key]; n > 1 {
		h.counts[key] = n - 1
		return
	}
	delete(h.counts, key)
	if h.peak > keptEntries && len(h.counts) < h.peak/8 {
		smaller := make(map[K]int, len(h.counts))
		maps.Copy(smaller, h.counts)
		h.counts, h.peak = smaller, len(smaller)
	}
}
