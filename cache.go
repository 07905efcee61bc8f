package dunlin

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// cacheBlocks keeps the Cache-Control blocks of the durations a program uses.
// They are few; beyond maxCacheBlocks, durations that are computed for each
// response, a block is made each time.
var cacheBlocks struct {
	sync.RWMutex
	bySecond map[int64]*HeaderBlock
}

const maxCacheBlocks = 64

// cacheBlock returns the Cache-Control block for d.
func cacheBlock(d time.Duration) *HeaderBlock {
	seconds := int64(0)
	if d > 0 {
		seconds = int64(math.Ceil(d.Seconds()))
	}
	cacheBlocks.RLock()
	b := cacheBlocks.bySecond[seconds]
	cacheBlocks.RUnlock()
	if b != nil {
		return b
	}
	value := "no-store"
	if seconds > 0 {
		value = "public, max-age=" + strconv.FormatInt(seconds, 10)
	}
	b = NewHeaderBlock("Cache-Control", value)
	cacheBlocks.Lock()
	defer cacheBlocks.Unlock()
	if cacheBlocks.bySecond == nil {
		cacheBlocks.bySecond = make(map[int64]*HeaderBlock)
	}
	if len(cacheBlocks.bySecond) < maxCacheBlocks {
		cacheBlocks.bySecond[seconds] = b
	}
	return b
}
