package admission

import (
	"net/netip"
	"runtime"
	"sync"
	"testing"
)

// nobody is a holder that cannot be ended.
type nobody struct{}

func (nobody) End(*Account)               {}
func (nobody) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }

// An account can be reused as soon as it holds nothing, even while the goroutine that released the last bytes is still in that
// call.
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

// An account that is closed between the check for that and the charge is removed from all lists exactly once.
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

// Memory reserved for output while the connection closes does not stay reserved.
func TestReservedWhileItCloses(t *testing.T) {
	h := NewHolders(NewBudget(2<<20), Clock())
	a := h.Open(nobody{}, netip.Addr{}).Lend()
	if !h.take(a, Output, 1000, 0) {
		t.Fatal("there is no room")
	}
	a.Close() // between the reservation of ReserveAhead and its note
	a.makes(1000)
	a.ForceAhead(500)
	if held := h.budget.Held(); held != 0 || h.Count() != 0 {
		t.Errorf("%d bytes are held, by %d", held, h.Count())
	}
	for range 2000 {
		a := h.Open(nobody{}, netip.Addr{}).Lend()
		var asks sync.WaitGroup
		asks.Go(func() {
			a.ReserveAhead(300 << 10)
			a.ForceAhead(1000)
		})
		a.Close()
		asks.Wait()
	}
	if held := h.budget.Held(); held != 0 || h.Count() != 0 || len(h.large) != 0 {
		t.Errorf("%d bytes are held, by %d, of whom %d hold much", held, h.Count(), len(h.large))
	}
}
