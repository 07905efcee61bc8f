package dunlin

import (
	"math"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// cacheBlocks has the Cache-Control blocks of the durations a program uses, in
// seconds; those of private ones are negative.
var cacheBlocks exchange.Memo[int64, *HeaderBlock]

// cacheBlock returns the Cache-Control block for d; sign is -1 for private, and 1 for public.
func cacheBlock(sign int64, d time.Duration) *HeaderBlock {
	n := sign * int64(math.Ceil(max(d, 0).Seconds()))
	return cacheBlocks.Get(n, func() *HeaderBlock {
		value := "no-store"
		switch {
		case n < 0:
			value = "private, max-age=" + strconv.FormatInt(-n, 10)
		case n > 0:
			value = "public, max-age=" + strconv.FormatInt(n, 10)
		}
		return NewHeaderBlock("Cache-Control", value)
	})
}
