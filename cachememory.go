package dunlin

import "github.com/dunlinhttp/dunlin/internal/admission"

// CacheMemory is a part of an App's memory budget for what can be made again at any time, see App.CacheMemory.
type CacheMemory struct{ kept *admission.Kept }

// CacheMemory returns a part of the budget ([MemoryStats]) for a cache. It gets room while a quarter of the budget is
// free, and is the first to go when there is no room for what clients send or have not taken: then drop is called,
// with the number of bytes that are needed. It drops about so much, or all there is, and calls Release for it before it returns. It may be called on any goroutine,
// also an event loop's, and several times at once: it must be quick, wait for nothing, and not reserve.
func (a *App) CacheMemory(drop func(bytes int64)) *CacheMemory {
	return &CacheMemory{a.memory.Budget.Keep(drop)}
}

// Reserve takes n bytes, before they are filled. It reports false, and takes nothing, when there is no room for them.
func (c *CacheMemory) Reserve(n int64) bool { return c.kept.Reserve(n) }

// Release gives n bytes back.
func (c *CacheMemory) Release(n int64) { c.kept.Release(n) }
