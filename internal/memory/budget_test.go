package memory

import (
	"net/netip"
	"sync"
	"testing"
)

func TestBudgetRefusesWhatDoesNotFit(t *testing.T) {
	b := New(100)
	if !b.reserve(Body, 60, 0) || !b.reserve(Input, 40, 0) {
		t.Fatal("refused although there was room")
	}
	if b.reserve(Input, 1, 0) || !b.reserve(Input, 1, 1) {
		t.Error("took more than its bound, or refused less")
	}
	b.Force(Output, 50)
	b.Force(Body, -60)
	if b.Held() != 91 || b.HeldFor(Output) != 50 || b.Peak() != 151 {
		t.Errorf("held %d, for output %d, at most %d", b.Held(), b.HeldFor(Output), b.Peak())
	}
}

func TestBudgetOfZeroHasNoBound(t *testing.T) {
	a := new(Budget).Open(nobody{}, netip.Addr{})
	if got := a.Reserve(Body, 1<<40); got != Granted {
		t.Error(got)
	}
}

func TestBudgetIsExactUnderConcurrency(t *testing.T) {
	b := New(3 * Small)
	var all sync.WaitGroup
	for range 8 {
		a := b.Open(nobody{}, netip.Addr{})
		all.Go(func() {
			for u := range Uses {
				for range 1000 {
					if a.Evicted() {
						a.Spare()
					}
					if a.TryReserve(u, Small/2+1) {
						a.EndRequest()
						a.ReleaseReservation()
						a.Release(u, a.Held())
					}
				}
			}
		})
	}
	all.Wait()
	for u := range Uses {
		if n := b.HeldFor(u); n != 0 {
			t.Errorf("%v: got %d bytes left", u, n)
		}
	}
	if b.Held() != 0 || b.Ending() != 0 || b.large.Load() != 0 || b.Count() != 0 {
		t.Errorf("%d bytes held, %d of ended holders, %d of large ones, by %d", b.Held(), b.Ending(), b.large.Load(), b.Count())
	}
}

// Requests that are served charge memory without allocating any.
func TestAccountsAllocateNothing(t *testing.T) {
	b := New(1 << 20)
	if n := testing.AllocsPerRun(100, func() {
		a := b.Open(nobody{}, netip.Addr{})
		a.Force(Input, 1000)
		a.Release(Input, 1000)
		a.Reserve(Body, 100<<10)
		a.EndRequest()
		a.BeginResponse(100 << 10)
		a.Force(Output, 100<<10)
		a.EndResponse()
		a.Release(Output, 100<<10)
		if !a.CloseIdle() {
			t.Fatal("it holds something")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
