package dunlin

import "github.com/dunlinhttp/dunlin/internal/admission"

// CacheMemory is a part of an App's memory budget for what can be made again at any time, see App.CacheMemory.
type CacheMemory struct{ kept *admission.Kept }

// CacheMemory returns a part of the memory budget ([MemoryStats]) for a cache. The cache gets room while a quarter of
// the budget is free, and is the first to give it back when clients need it: then drop is called with the number of
// bytes needed. It drops about as many, or all that there are, and calls Release for them before it returns.
//
// drop may be called on any goroutine, an event loop's included, and several times at once. It must be quick, must not
// block, and must not call Reserve.
func (a *App) CacheMemory(drop func(bytes int64)) *CacheMemory {
	return &CacheMemory{a.memory.Budget.Keep(drop)}
}

// Reserve takes n bytes, before they are filled. It reports false, and takes nothing, when there is no room for them.
func (c *CacheMemory) Reserve(n int64) bool { return c.kept.Reserve(n) }

// Release gives n bytes back.
func (c *CacheMemory) Release(n int64) { c.kept.Release(n) }
