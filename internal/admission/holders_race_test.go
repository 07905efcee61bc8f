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
