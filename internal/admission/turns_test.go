package admission

import (
	"net/netip"
	"testing"
	"time"
)

// Memory can be full of small holders that wait for much, so that none would make progress. They are evicted to make room:
// those of an address that holds more than half of it at once.
func TestWaitersMakeRoom(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	var waiting []*cappedPeer
	for h.budget.Held()+64<<10 <= 4<<20 {
		p := open(there)
		p.Force(Input, 64<<10)
		if got := p.ReserveBody(1 << 20); got == Granted {
			p.Working(true) // it cannot be ended
		} else {
			waiting = append(waiting, p)
		}
	}
	ended := func() (n int) {
		for _, p := range waiting {
			if p.ended {
				n++
			}
		}
		return n
	}
	*now += int64(time.Second)
	p := open(here)
	if got := p.ReserveBody(512 << 10); got != MustWait {
		t.Fatalf("with nothing given back yet: %v", got)
	}
	if n := ended(); n == 0 || n > (512<<10)/(64<<10)+2 {
		t.Fatalf("%d of %d that wait were ended", n, len(waiting))
	}
	for _, w := range waiting {
		if w.ended {
			w.Release(Input, w.Held())
		}
	}
	// Their room goes to the waiter at another address, not to the others at the same one.
	for _, w := range waiting {
		if !w.ended && w.Reserve(Body, 256<<10) == Granted {
			t.Fatal("an address that holds more than half of the budget came first")
		}
	}
	if got := p.ReserveBody(512 << 10); got != Granted {
		t.Errorf("the one they were ended for: %v", got)
	}
}

// No small holder that waits is ended while a large holder can be ended.
func TestLargeHoldersMakeRoomBeforeWaiters(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	large := open(there)
	large.ReserveBody(3 << 20)
	waiter := open(there)
	waiter.Force(Input, 64<<10)
	waiter.ReserveBody(2 << 20)
	*now += int64(10 * time.Second)
	p := open(here)
	p.Reserve(Input, 64<<10)
	p.Force(Input, 1<<20)
	if waiter.ended || !large.ended {
		t.Errorf("ended: the one that waits %v, the one that holds much %v", waiter.ended, large.ended)
	}
}

// A client whose address holds nothing does not wait for the large holders: it gets the share reserved for small holders. Other
// clients wait, and so do clients without an address.
func TestReserveFirst(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	for range 3 {
		open(there).ReserveBody(1 << 20)
	}
	if open(there).ReserveFirst(512<<10) || open(netip.Addr{}).ReserveFirst(512<<10) {
		t.Error("one whose address holds much, or that has none, went first")
	}
	p := open(here)
	if !p.ReserveFirst(512<<10) || p.Held() != 512<<10 {
		t.Errorf("a new client has to wait; it holds %d", p.Held())
	}
	if p.EndAhead(); p.Held() != 0 {
		t.Errorf("%d bytes are not given back", p.Held())
	}
	if open(here).ReserveFirst(2 << 20) {
		t.Error("more was given than there is")
	}
}

// The memory of waiters is no use to a request if working holders fill the share of large holders: all wait, for as long as
// they may.
func TestWaitersStayWhereTheyAreOfNoUse(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(1 << 20)
	var working []*cappedPeer
	for range 2 {
		p := open(there)
		if got := p.ReserveBody(300 << 10); got != Granted {
			t.Fatalf("the first: %v", got)
		}
		p.Working(true)
		working = append(working, p)
	}
	waiting := []*cappedPeer{open(there), open(there), open(here)}
	for range 9 {
		for _, p := range waiting {
			p.Force(Input, 1<<10)
			if got := p.ReserveBody(300 << 10); got != MustWait {
				t.Fatalf("waiting: %v", got)
			}
		}
		small := open(there)
		if got := small.ReserveBody(40 << 10); got != Granted {
			t.Fatalf("one that wants little: %v", got)
		}
		small.EndRequest()
		small.EndAhead()
		*now += int64(time.Second)
	}
	for _, p := range waiting {
		if p.ended {
			t.Error("one that waits was ended")
		}
	}
	working[0].EndRequest()
	working[0].EndAhead()
	if got := waiting[2].ReserveBody(300 << 10); got != Granted { // its address holds nothing else
		t.Errorf("when there is room: %v", got)
	}
}

// A holder with room for a response that is being made is not ended for it, however long that takes. It is ended only if the
// client does not read the response, or the action waits for the client.
func TestAnswersThatAreMadeAreNotEnded(t *testing.T) {
	for name, then := range map[string]func(*cappedPeer){
		"":                              nil,
		"the client takes nothing":      func(p *cappedPeer) { p.Force(Output, 3<<20); p.Answers(3 << 20) },
		"the action waits for a client": func(p *cappedPeer) { p.Working(false) },
		"nothing is made any more":      func(p *cappedPeer) { p.Force(Output, 3<<20); p.EndAhead() },
	} {
		h, now, open := cappedHolders(0, 0)
		h.budget.SetBound(4 << 20)
		p := open(there)
		if got := p.ReserveAhead(3 << 20); got != Granted {
			t.Fatal(got)
		}
		if then != nil {
			then(p)
		}
		*now += int64(10 * time.Second)
		other := open(here)
		other.Reserve(Input, 64<<10)
		other.Force(Input, 1<<20)
		if want := then != nil; p.ended != want {
			t.Errorf("%q: ended %v, want %v", name, p.ended, want)
		}
	}
}

// Nothing is known of a new small holder: it is not evicted for bodies that have arrived in part, until it is silent for long.
func TestNewHoldersAreBelieved(t *testing.T) {
	for _, silent := range []time.Duration{0, 2 * time.Second} {
		h, now, open := cappedHolders(0, 0)
		h.budget.SetBound(4 << 20)
		var bodies []*cappedPeer
		for range 63 {
			p := open(there)
			p.Force(Input, 64<<10)
			p.Moved(30<<10, 30<<10)
			bodies = append(bodies, p)
		}
		*now += int64(200 * time.Millisecond)
		p := open(there)
		p.Force(Input, 16<<10)
		*now += int64(silent)
		for _, body := range bodies {
			body.Moved(1, 30<<10)
		}
		open(here).Force(Input, 64<<10)
		if n := h.Ended(); n != 1 {
			t.Fatalf("silent for %v: %d were ended, want one", silent, n)
		}
		if want := silent > 0; p.ended != want {
			t.Errorf("silent for %v: ended %v, want %v", silent, p.ended, want)
		}
	}
}

// A reservation is not charged again when the memory it was made for is charged.
func TestReserveHeld(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	h.budget.SetBound(1 << 20)
	p := open(there)
	p.Force(Input, 64<<10)
	p.ReserveHeld(Input, 64<<10)
	if got := p.ReserveBody(40 << 10); got != Granted || p.Held() != 64<<10 || h.budget.HeldFor(Body) != 40<<10 {
		t.Errorf("a part of it: %v, %d bytes", got, p.Held())
	}
	if got := p.ReserveBody(80 << 10); got != Granted || p.Held() != 80<<10 || h.budget.HeldFor(Body) != 80<<10 || h.budget.HeldFor(Input) != 0 {
		t.Errorf("all of it and more: %v, %d bytes", got, p.Held())
	}
	p.EndRequest()
	p.Close()
	if held := h.budget.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// A connection that asks for much at once has one turn at a time: a client of the same address whose own connection holds
// little has priority over the rest of those requests, even while there is no room yet.
func TestGroupsTakeTurns(t *testing.T) {
	h, now, open := cappedHolders(0, 0)
	h.budget.SetBound(4 << 20)
	var many, one Group
	member := func(g *Group) *cappedPeer {
		p := open(there)
		p.Join(g)
		p.Force(Input, 1<<10)
		return p
	}
	var holds, waits []*cappedPeer
	for len(waits) < 20 {
		p := member(&many)
		if p.ReserveAhead(512<<10) == Granted {
			holds = append(holds, p)
		} else {
			waits = append(waits, p)
		}
	}
	first, second := member(&one), member(&one)
	if got := first.ReserveAhead(512 << 10); got != MustWait {
		t.Fatalf("with nothing given back yet: %v", got)
	}
	if got := second.ReserveAhead(512 << 10); got != MustWait {
		t.Fatalf("with nothing given back yet: %v", got)
	}
	*now += int64(100 * time.Millisecond)
	for _, p := range holds[:2] {
		p.EndAhead()
	}
	for _, p := range append(waits, second) {
		if p.ReserveAhead(512<<10) == Granted {
			t.Fatal("one whose connection holds much, or had its turn, came first")
		}
	}
	if got := first.ReserveAhead(512 << 10); got != Granted {
		t.Errorf("one whose connection holds nothing: %v", got)
	}
}

// Memory can be full of small holders. The holders of almost nothing at an address are not evicted first, even if they have
// waited so long that they cost most, since that would make no room; they are evicted if the address has no others.
func TestNextToNothingStays(t *testing.T) {
	for _, large := range []int64{60 << 10, 4 << 10} {
		h, now, open := cappedHolders(0, 0)
		h.budget.SetBound(2 << 20)
		tiny := make([]*cappedPeer, 100)
		for i := range tiny {
			tiny[i] = open(there)
			tiny[i].Force(Input, 4<<10)
		}
		*now += int64(time.Hour)
		ended := func(peers []*cappedPeer) (n int) {
			for _, p := range peers {
				if p.ended {
					n++
				}
			}
			return n
		}
		var others []*cappedPeer
		for range 4 << 20 / large {
			p := open(there)
			p.Force(Input, large)
			others = append(others, p)
			*now += int64(100 * time.Millisecond)
		}
		switch few := ended(tiny); {
		case ended(others)+few == 0:
			t.Error("nobody made room")
		case large > 4<<10 && few > 0:
			t.Errorf("%d were ended who hold next to nothing, and %d others", few, ended(others))
		case large == 4<<10 && few == 0:
			t.Error("of those who hold equally little the oldest stay")
		}
	}
}
