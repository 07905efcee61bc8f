package memory

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
func TestLastReleaseRacesWithNextHolder(t *testing.T) {
	h := New(1 << 20)
	for range 5000 {
		a := h.Open(nobody{}, netip.Addr{})
		a.Force(Input, 2*Small)
		var running sync.WaitGroup
		running.Go(func() { a.Release(Input, 2*Small) })
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
	if len(h.all) != 0 || h.Count() != 0 || h.Held() != 0 {
		t.Errorf("%d are listed, %d hold something, %d bytes are held", len(h.all), h.Count(), h.Held())
	}
}

// An account that is closed between the check for that and the charge is removed from all lists exactly once.
func TestCloseDuringReserve(t *testing.T) {
	h := New(2 << 20)
	h.SetCaps(0, 0, 1<<20)
	from := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	other := h.Open(nobody{}, from)
	for range 3 {
		a := h.Open(nobody{}, from).Lend()
		a.Close()
		if !h.grant(a, Body, 300<<10, 0) {
			t.Fatal("there is no room")
		}
		a.Release(Body, 300<<10)
		if at := other.address; at.n != 1 || at.held.Load() != 0 || len(h.all) != 1 || h.Count() != 0 {
			t.Errorf("%d accounts are left at the address, which hold %d; %d are open, %d hold something", at.n, at.held.Load(), len(h.all), h.Count())
		}
	}
	other.Close()
}

// Memory reserved for output while the connection closes does not stay reserved.
func TestReserveDuringClose(t *testing.T) {
	h := New(2 << 20)
	a := h.Open(nobody{}, netip.Addr{}).Lend()
	if !h.grant(a, Output, 1000, 0) {
		t.Fatal("there is no room")
	}
	a.Close() // between the reservation and its note
	a.granted(Output, 1000, 0)
	a.ForceReserve(500)
	if held := h.Held(); held != 0 || h.Count() != 0 {
		t.Errorf("%d bytes are held, by %d", held, h.Count())
	}
	for range 2000 {
		a := h.Open(nobody{}, netip.Addr{}).Lend()
		var asks sync.WaitGroup
		asks.Go(func() {
			a.Reserve(Output, 300<<10)
			a.ForceReserve(1000)
		})
		a.Close()
		asks.Wait()
	}
	if held := h.Held(); held != 0 || h.Count() != 0 || len(h.all) != 0 {
		t.Errorf("%d bytes are held, by %d, of whom %d hold much", held, h.Count(), len(h.all))
	}
}
