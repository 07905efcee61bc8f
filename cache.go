package dunlin

import (
	"math"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// cacheBlocks maps durations in seconds to Cache-Control blocks. Negative keys are for private blocks.
var cacheBlocks exchange.Memo[int64, *HeaderBlock]

// cacheBlock returns the Cache-Control block for d. sign is -1 for private and 1 for public.
func cacheBlock(scope string, sign int64, d time.Duration) *HeaderBlock {
	n := sign * int64(math.Ceil(max(d, 0).Seconds()))
	return cacheBlocks.Get(n, func() *HeaderBlock {
		if n == 0 {
			return NewHeaderBlock("Cache-Control", "no-store")
		}
		return NewHeaderBlock("Cache-Control", scope+", max-age="+strconv.FormatInt(sign*n, 10))
	})
}
