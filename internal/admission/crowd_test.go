package admission

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However often memory is released, a crowd of waiters asks no more often in total than a few waiters do; and each gets its
// room when there is some.
func TestCrowdsAskSeldom(t *testing.T) {
	for _, crowd := range []int{askFreely + 1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			h := NewHolders(NewBudget(4<<20), Clock())
			open := func() *cappedPeer {
				p := new(cappedPeer)
				p.Account = h.Open(p, there)
				return p
			}
			first := open()
			if got := first.ReserveAhead(3 << 20); got != Granted {
				t.Fatal(got)
			}
			var asks, granted atomic.Int64
			var all sync.WaitGroup
			for range crowd {
				p := open()
				p.Force(Input, 1<<10)
				all.Go(func() {
					ask := func() Outcome {
						asks.Add(1)
						return p.ReserveAhead(1 << 20)
					}
					if p.Acquire(ask, nil, func() bool { return false }) == Granted {
						granted.Add(1)
					}
					p.EndAhead()
					p.Release(Input, 1<<10)
				})
			}
			tick := time.NewTicker(500 * time.Microsecond) // on the bubble's clock
			defer tick.Stop()
			for range 2000 {
				h.wake()
				<-tick.C
			}
			synctest.Wait()
			if n, most := asks.Load(), int64(time.Second/askPause)+2*int64(crowd); n > most || granted.Load() > 0 {
				t.Errorf("%d that wait have asked %d times in a second, %d of them with success; want at most %d", crowd, n, granted.Load(), most)
			}
			first.EndAhead()
			all.Wait()
			if n := granted.Load(); n != int64(crowd) {
				t.Errorf("%d of %d have had room", n, crowd)
			}
		})
	}
}
