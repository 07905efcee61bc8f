package admission

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// nobody is a holder that cannot be ended.
type nobody struct{}

func (nobody) End(*Account)               {}
func (nobody) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }

// An account is another's as soon as it holds nothing, also while who gave the last of it back is
// still busy with that.
func TestLastReleaseBesideTheNextHolder(t *testing.T) {
	h := NewHolders(NewBudget(1<<20), Clock())
	for range 5000 {
		a := h.Open(nobody{}, netip.Addr{})
		a.Force(Input, 2*leastShare)
		var running sync.WaitGroup
		running.Go(func() { a.Release(Input, 2*leastShare) })
		for !a.CloseIdle() {
			runtime.Gosched()
		}
		b := h.Open(nobody{}, netip.Addr{})
		b.Force(Input, 1)
		running.Wait()
		b.Release(Input, 1)
		if !b.CloseIdle() {
			t.Fatal("the next one holds something")
		}
	}
	if len(h.large) != 0 || h.Count() != 0 || h.budget.Held() != 0 {
		t.Errorf("%d are listed, %d hold something, %d bytes are held", len(h.large), h.Count(), h.budget.Held())
	}
}

// Those who wait in line on goroutines get what is given back, leave when nobody wants it any more, and are closed
// or ended meanwhile: nothing is lost, and nobody is left.
func TestLineBesideGivingUpAndClosing(t *testing.T) {
	const clients, rounds = 32, 30
	h := NewHolders(NewBudget(2<<20), Clock())
	var granted, over atomic.Int64
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			from := netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 5)})
			for round := range rounds {
				a := h.Open(nobody{}, from).Lend()
				done := make(chan struct{})
				size := int64(100+(i*37+round*61)%500) << 10
				var others sync.WaitGroup
				switch (i + round) % 6 {
				case 0:
					others.Go(func() { close(done) })
				case 1:
					others.Go(a.Close)
				case 2:
					others.Go(func() { h.end(a) })
				}
				switch a.AcquireBody(size, done, func() bool { return (i+round)%6 < 3 }) {
				case Granted:
					granted.Add(1)
					a.Working(true)
					runtime.Gosched()
					a.EndRequest()
				case MustWait:
					over.Add(1)
				}
				others.Wait()
				if (i+round)%6 != 1 {
					a.Close()
				}
			}
		})
	}
	running.Wait()
	if granted.Load() == 0 {
		t.Error("nothing was granted")
	}
	if h.line.n.Load() != 0 || len(h.line.sources) != 0 || h.Waiting() != 0 || h.modest.Load() != 0 || h.larges.Load() != 0 {
		t.Errorf("left in line: %d of %d addresses, %d wait, %d first; %d hold much", h.line.n.Load(), len(h.line.sources), h.Waiting(), h.modest.Load(), h.larges.Load())
	}
	if len(h.large) != 0 || h.Count() != 0 || h.budget.Held() != 0 || h.Ending() != 0 {
		t.Errorf("%d are listed, %d hold something, %d bytes are held, %d ending", len(h.large), h.Count(), h.budget.Held(), h.Ending())
	}
	t.Logf("%d granted, %d given up", granted.Load(), over.Load())
}

// One that is closed between looking whether it is and taking what it asks for is taken out of everything once.
func TestClosedWhileItAsks(t *testing.T) {
	h := NewHolders(NewBudget(2<<20), Clock())
	from := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	other := h.Open(nobody{}, from)
	for range 3 {
		a := h.Open(nobody{}, from).Lend()
		a.Close()
		if !h.takeMuch(a, Body, 300<<10, 0) {
			t.Fatal("there is no room")
		}
		a.Release(Body, 300<<10)
		if src := other.source; src.n != 1 || src.held.Load() != 0 || len(h.large) != 0 || h.Count() != 0 {
			t.Errorf("%d accounts are left at the address, which hold %d; %d hold much, %d something", src.n, src.held.Load(), len(h.large), h.Count())
		}
	}
	other.Close()
}
