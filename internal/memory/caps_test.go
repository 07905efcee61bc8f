package memory

import (
	"net/netip"
	"sync"
	"testing"
	"time"
)

// A cappedPeer is a holder that releases its memory as soon as it is ended.
type cappedPeer struct {
	*Account
	ended bool
}

func (p *cappedPeer) End(*Account)               { p.ended = true }
func (p *cappedPeer) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }

var here, there = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// cappedBudget returns a budget that has room for all; now is its clock.
func cappedBudget(connection, address int64) (h *Budget, now *int64, open func(netip.Addr) *cappedPeer) {
	now = new(int64)
	*now = int64(time.Hour)
	h = New(64 << 20)
	h.Now = func() int64 { return *now }
	h.maxConnection, h.maxAddress = connection, address
	return h, now, func(from netip.Addr) *cappedPeer {
		p := new(cappedPeer)
		p.Account = h.Open(p, from)
		return p
	}
}

// reserveTo reserves memory for a body of a total size.
func (a *Account) reserveTo(total int64) Outcome {
	a.mu.Lock()
	has := a.body
	a.mu.Unlock()
	if total <= has {
		return Granted
	}
	return a.Reserve(Body, total-has)
}

// The memory for input of one connection is bounded, however much room there is; its response is not.
func TestConnectionCap(t *testing.T) {
	_, _, open := cappedBudget(1<<20, 0)
	p := open(here)
	if got := p.Reserve(Body, 1<<20); got != Granted {
		t.Fatalf("as much as it may: got %v", got)
	}
	if got := p.Reserve(Body, 1); got != NoRoom || p.Met() != ConnectionCap {
		t.Errorf("one byte more: got %v, %v", got, p.Met())
	}
	p.Force(Output, 2<<20)
	if p.ended {
		t.Error("it was ended for its answer")
	}
	p.Force(Input, 1)
	if !p.ended || p.Met() != ConnectionCap {
		t.Errorf("ended: %v, %v", p.ended, p.Met())
	}
}

// Accounts of one connection are bounded together, except for responses.
func TestConnectionCapOfAccounts(t *testing.T) {
	_, _, open := cappedBudget(1<<20, 0)
	var g AccountSet
	one, two, other := open(here), open(here), open(here)
	one.Join(&g)
	two.Join(&g)
	if got := one.reserveTo(600 << 10); got != Granted {
		t.Fatalf("the first: got %v", got)
	}
	one.Force(Output, 2<<20)
	if got := two.reserveTo(600 << 10); got != NoRoom || two.Met() != PartsCap {
		t.Errorf("the second: got %v, %v", got, two.Met())
	}
	if got := two.reserveTo(2 << 20); got != NoRoom || two.Met() != ConnectionCap {
		t.Errorf("more than any may have: %v, %v", got, two.Met())
	}
	if got := other.reserveTo(600 << 10); got != Granted {
		t.Errorf("another connection: got %v", got)
	}
	one.EndRequest() // its room is for the response now
	if got := two.reserveTo(600 << 10); got != Granted {
		t.Errorf("the second, behind the first: got %v", got)
	}
	two.Force(Input, 600<<10)
	if !two.ended || one.ended || two.Met() != ConnectionCap {
		t.Errorf("ended: %v, %v, %v", one.ended, two.ended, two.Met())
	}
	one.ReleaseReservation()
	one.Release(Output, one.Held())
	two.EndRequest()
	two.ReleaseReservation()
	two.Release(Input, 600<<10)
	if n := g.held.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// At an address that is at its cap, a small holder gets room from the large holders of that address; other addresses are not
// affected.
func TestAddressCapEvictsOnlyItsHolders(t *testing.T) {
	h, now, open := cappedBudget(0, 4<<20)
	other := open(there)
	other.BeginResponse(8 << 20)
	other.Force(Output, 8<<20) // larger than the cap, and alone
	if other.ended {
		t.Fatal("an answer that is alone was cut off")
	}
	var large []*cappedPeer
	for range 4 {
		p := open(here)
		if got := p.reserveTo(1 << 20); got != Granted {
			t.Fatalf("a body: got %v", got)
		}
		large = append(large, p)
		*now += int64(time.Millisecond)
	}
	*now += int64(time.Second)
	large[0].Progress(900<<10, 100<<10) // makes good progress
	for i := range 20 {
		small := open(here)
		if got := small.Reserve(Input, 16<<10); got != Granted {
			t.Fatalf("the small one %d: got %v", i, got)
		}
	}
	ended := 0
	for _, p := range large {
		if p.ended {
			ended++
			if p.Met() != AddressCap {
				t.Errorf("ended because of %v", p.Met())
			}
		}
	}
	if ended != 1 || !large[1].ended || other.ended {
		t.Errorf("%d ended, the costliest %v, one of another address %v", ended, large[1].ended, other.ended)
	}
	if h.Ended() != 1 {
		t.Errorf("%d ended by the count", h.Ended())
	}
}

// A client that asks for much at an address at its cap waits for holders that make progress, and is refused after a long wait.
func TestRequestsWaitAtAddressCap(t *testing.T) {
	_, now, open := cappedBudget(0, 4<<20)
	first, second := open(here), open(here)
	if got := first.reserveTo(3 << 20); got != Granted {
		t.Fatal(got)
	}
	first.SetWorking(true)
	if got := second.reserveTo(2 << 20); got != MustWait || first.ended {
		t.Fatalf("%v; the one that the server works for was ended: %v", got, first.ended)
	}
	*now += int64(10 * time.Second)
	if got := second.reserveTo(2 << 20); got != NoRoom || second.Met() != AddressCap {
		t.Errorf("after the longest wait: got %v, %v", got, second.Met())
	}
	first.Release(Body, 3<<20)
	if got := second.reserveTo(2 << 20); got != Granted || second.Met() != NoCap {
		t.Errorf("with room: got %v, %v", got, second.Met())
	}
	if got := open(here).reserveTo(5 << 20); got != NoRoom {
		t.Errorf("more than an address may hold: %v", got)
	}
}

// Responses that clients do not read make room for each other: the stalled ones are evicted first.
func TestAddressCapOfAnswers(t *testing.T) {
	_, now, open := cappedBudget(0, 4<<20)
	answer := func(n int64) *cappedPeer {
		p := open(here)
		p.BeginResponse(n)
		p.Force(Output, n)
		return p
	}
	taken, silent := answer(2<<20), answer(1<<20)
	for range 2 {
		*now += int64(500 * time.Millisecond)
		taken.Progress(512<<10, 1<<20)
	}
	fresh := answer(2 << 20)
	if taken.ended || fresh.ended || !silent.ended {
		t.Errorf("ended: %v %v %v; want the one that takes nothing", taken.ended, fresh.ended, silent.ended)
	}
}

// The cap holds under concurrency: all grants together stay within it.
func TestAddressCapWithManyAtOnce(t *testing.T) {
	const most, each = 4 << 20, 64 << 10
	h, _, open := cappedBudget(0, most)
	granted := make(chan bool)
	for range 200 {
		p := open(here)
		p.SetWorking(true) // cannot be ended
		go func() { granted <- p.Reserve(Body, each) == Granted }()
	}
	n := 0
	for range 200 {
		if <-granted {
			n++
		}
	}
	if n != most/each || h.Held() != most {
		t.Errorf("%d granted, %d bytes held", n, h.Held())
	}
}

// Accounts of one connection that ask at the same time do not get more than the cap together; neither do accounts with
// room for responses.
func TestConnectionCapOfAccountsAtOnce(t *testing.T) {
	_, _, open := cappedBudget(1<<20, 0)
	for _, size := range []int64{Small / 2, 300 << 10} {
		var g AccountSet
		var all sync.WaitGroup
		for range 64 {
			p := open(here)
			p.Join(&g)
			all.Go(func() {
				if p.reserveTo(size) == NoRoom && p.Met() != PartsCap {
					t.Errorf("refused because of %v", p.Met())
				}
				p.Unwait()
			})
		}
		all.Wait()
		if held := g.held.Load(); held > 1<<20 || held+size <= 1<<20 {
			t.Errorf("bodies of %d bytes hold %d", size, held)
		}
	}
	var g AccountSet
	for range 3 {
		p := open(here)
		p.Join(&g)
		if got := p.Reserve(Output, 600<<10); got != Granted {
			t.Fatalf("an answer: got %v", got)
		}
		p.reserveTo(600 << 10)
	}
	if held := g.held.Load(); held != 600<<10 {
		t.Errorf("bodies in the room of answers hold %d", held)
	}
}

// A body of unknown length that is alone at its address, and fits, is not refused because its buffer would grow beyond the cap.
func TestGrownBufferLeavesRoomAtAnAddress(t *testing.T) {
	h, _, open := cappedBudget(0, 1<<20)
	p := open(here)
	p.Force(Input, 70<<10)
	for room := 0; room < 750<<10; {
		if room = h.MostGrown(max(512, 2*room), room, true); p.reserveTo(int64(room)) != Granted {
			t.Fatalf("a buffer of %d bytes is refused", room)
		}
	}
}
