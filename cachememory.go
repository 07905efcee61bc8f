package dunlin

import "github.com/dunlinhttp/dunlin/internal/admission"

// CacheMemory is the part of an App's memory budget that a cache uses, see App.CacheMemory.
type CacheMemory struct{ kept *admission.Kept }

// CacheMemory returns a part of the memory budget ([MemoryStats]) for a cache. The cache can
// reserve memory while a quarter of the budget is free. It is the first to release memory when
// clients need it: the app calls drop with the number of bytes needed. drop evicts about that many
// bytes, or all it has, and calls Release for them before it returns.
//
// drop must be safe for concurrent use. It may run on any goroutine, including an event loop's. It
// must be quick, and must not block or call Reserve.
func (a *App) CacheMemory(drop func(bytes int64)) *CacheMemory {
	return &CacheMemory{a.memory.Budget.Keep(drop)}
}

// Reserve takes n bytes of the budget; call it before filling them. It reports false, and takes
// nothing, if there is no room.
func (c *CacheMemory) Reserve(n int64) bool { return c.kept.Reserve(n) }

// Release returns n bytes to the budget.
func (c *CacheMemory) Release(n int64) { c.kept.Release(n) }
