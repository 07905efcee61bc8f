package admission

import (
	"net/netip"
	"testing"
	"time"
)

// A waiter for room is asked now and then whether its request is over, however often room is released for others.
func TestWhoWaitsInACrowdIsAskedWhetherItIsOver(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	const patience = 10 * time.Second
	began := time.Now()
	got := open(here).Acquire(func() Outcome {
		h.wake() // another holder releases memory
		if time.Since(began) > patience {
			return NoRoom
		}
		return MustWait
	}, nil, func() bool { return true })
	if got != MustWait {
		t.Errorf("it waited for %v, and then got %v", patience, got)
	}
}

// A small holder is not refused because concurrent requests took the room made for it, while other holders can still be ended.
func TestRoomThatOthersTookIsMadeAgain(t *testing.T) {
	h := NewHolders(NewBudget(1<<20), Clock())
	from := netip.MustParseAddr("192.0.2.1")
	const size = 60_000
	first := 0 // others ask while these make room
	for range h.budget.Bound() / size {
		p := &heldPeer{}
		p.Account = h.Open(p, from)
		p.end = func() {
			if first++; first > 5 {
				return
			}
			for range 2 { // one takes this room, the other makes more
				if got := h.Open(nobody{}, from).Reserve(Body, size); got != Granted {
					t.Errorf("one that asked meanwhile: %v", got)
				}
			}
		}
		if got := p.Reserve(Body, size); got != Granted {
			t.Fatalf("while there is room: %v", got)
		}
	}
	if got := h.Open(nobody{}, from).Reserve(Body, size); got != Granted || first < 5 {
		t.Errorf("the one that asked first: %v, after %d ends", got, first)
	}
}

// A heldPeer is a holder that calls end when it is ended, and releases nothing.
type heldPeer struct {
	*Account
	end func()
}

func (p *heldPeer) End(*Account)             { p.end() }
func (*heldPeer) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }
