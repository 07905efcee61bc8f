package admission

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// What it costs to serve one of those who wait in line, with so many others who wait.
func BenchmarkLine(b *testing.B) {
	for _, by := range []struct {
		name string
		from func(i int) netip.Addr
	}{
		{"one address", func(int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, 1}) }},
		{"3000 addresses", func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }},
	} {
		b.Run(by.name, func(b *testing.B) {
			const clients = 3000
			h := NewHolders(NewBudget(64<<20), Clock())
			var over atomic.Bool
			served := make(chan *Account, clients)
			var running sync.WaitGroup
			b.ReportAllocs()
			for i := range clients {
				running.Go(func() {
					for !over.Load() {
						a := h.Open(nobody{}, by.from(i)).Lend()
						if a.AcquireBody(1<<20, nil, func() bool { return false }) != Granted {
							a.Close()
							continue
						}
						a.Working(true)
						served <- a
					}
				})
			}
			give := func(a *Account) {
				a.EndRequest()
				a.Close()
			}
			for range b.N {
				for h.Waiting() < clients*9/10 {
					runtime.Gosched()
				}
				give(<-served)
			}
			over.Store(true)
			go func() {
				for a := range served {
					give(a)
				}
			}()
			running.Wait()
			close(served)
		})
	}
}
