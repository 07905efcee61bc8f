package dunlin

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// A cacheBlocks keeps the Cache-Control blocks of the durations a program uses.
// They are few; beyond maxCacheBlocks, durations that are computed for each
// response, a block is made each time.
type cacheBlocks struct {
	scope string // the directive in front of max-age
	sync.RWMutex
	bySecond map[int64]*HeaderBlock
}

var privateFor, publicFor = &cacheBlocks{scope: "private"}, &cacheBlocks{scope: "public"}

const maxCacheBlocks = 64

// block returns the Cache-Control block for d.
func (c *cacheBlocks) block(d time.Duration) *HeaderBlock {
	seconds := int64(0)
	if d > 0 {
		seconds = int64(math.Ceil(d.Seconds()))
	}
	c.RLock()
	b := c.bySecond[seconds]
	c.RUnlock()
	if b != nil {
		return b
	}
	value := "no-store"
	if seconds > 0 {
		value = c.scope + ", max-age=" + strconv.FormatInt(seconds, 10)
	}
	b = NewHeaderBlock("Cache-Control", value)
	c.Lock()
	defer c.Unlock()
	if c.bySecond == nil {
		c.bySecond = make(map[int64]*HeaderBlock)
	}
	if len(c.bySecond) < maxCacheBlocks {
		c.bySecond[seconds] = b
	}
	return b
}
