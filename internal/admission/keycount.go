package admission

import "maps"

// keyCount counts by key. It has an entry for a key only while the count is not zero. It is not safe for concurrent use.
type keyCount[K comparable] struct {
	counts map[K]int
	peak   int // maximum number of entries since counts was made
}

// keptEntries is the maximum peak of a map that is never replaced by a smaller one. Maps do not shrink by themselves.
const keptEntries = 256

// add increments the count of key. If the count has reached limit, it changes nothing and returns false.
func (h *keyCount[K]) add(key K, limit int) bool {
	n := h.counts[key]
	if n >= limit {
		return false
	}
	if h.counts == nil {
		h.counts = make(map[K]int)
	}
	h.counts[key] = n + 1
	h.peak = max(h.peak, len(h.counts))
	return true
}

// release undoes a successful add.
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
