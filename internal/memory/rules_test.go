package memory

import (
	"testing"
	"time"
)

// No holder that waits is ended while a slow one of more than Small can be ended.
func TestSlowHoldersMakeRoomBeforeWaiters(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(4 << 20)
	large := open(there)
	large.reserveTo(3 << 20)
	waiter := open(there)
	waiter.Force(Input, 64<<10)
	waiter.reserveTo(2 << 20)
	*now += int64(10 * time.Second)
	p := open(here)
	p.Reserve(Body, 64<<10)
	p.Force(Input, 1<<20)
	if waiter.ended || !large.ended {
		t.Errorf("ended: the one that waits %v, the one that holds much %v", waiter.ended, large.ended)
	}
}

// The values of a body that has arrived are granted if they fit, although other bodies wait.
func TestValuesPassBodiesThatWait(t *testing.T) {
	h, _, open := cappedBudget(0, 0)
	h.SetBound(4 << 20)
	decodes, waits := open(there), open(there)
	if got := decodes.reserveTo(2 << 20); got != Granted {
		t.Fatalf("the body: %v", got)
	}
	if got := waits.reserveTo(2 << 20); got != MustWait {
		t.Fatalf("a body without room: %v", got)
	}
	if !decodes.ReserveBeside(512<<10, true) {
		t.Error("the values were refused")
	}
	if decodes.ReserveBeside(2<<20, true) {
		t.Error("values that do not fit were granted")
	}
}

// The memory of waiters is no use to a request if working holders fill the share of large holders: all wait, for as long as
// they may, and in order.
func TestUselessWaitersAreNotEvicted(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(1 << 20)
	var working []*cappedPeer
	for range 2 {
		p := open(there)
		if got := p.reserveTo(300 << 10); got != Granted {
			t.Fatalf("the first: got %v", got)
		}
		p.SetWorking(true)
		working = append(working, p)
	}
	waiting := []*cappedPeer{open(there), open(there), open(here)}
	for range 9 {
		for range 2 {
			for _, p := range waiting {
				p.Force(Input, 100)
				if got := p.reserveTo(300 << 10); got != MustWait {
					t.Fatalf("waiting: got %v", got)
				}
			}
			*now += int64(500 * time.Millisecond)
		}
		small := open(there)
		if got := small.reserveTo(40 << 10); got != Granted {
			t.Fatalf("one that wants little: got %v", got)
		}
		small.EndRequest()
		small.ReleaseReservation()
	}
	for _, p := range waiting {
		if p.ended {
			t.Error("one that waits was ended")
		}
	}
	working[0].EndRequest()
	working[0].ReleaseReservation()
	if got := waiting[1].reserveTo(300 << 10); got != MustWait {
		t.Errorf("the second, when there is room: got %v", got)
	}
	if got := waiting[0].reserveTo(300 << 10); got != Granted {
		t.Errorf("the first, when there is room: got %v", got)
	}
}

// A request that is given up without notice does not delay the others.
func TestStaleWaitersDoNotDelayOthers(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(4 << 20)
	holder := open(there)
	holder.reserveTo(3 << 20)
	holder.SetWorking(true)
	for _, p := range []*cappedPeer{open(there), open(here)} {
		if got := p.Reserve(Output, 1<<20); got != MustWait {
			t.Fatal(got)
		}
		*now += staleAfter
	}
	holder.EndRequest()
	holder.ReleaseReservation()
	if got := open(here).Reserve(Output, 1<<20); got != Granted {
		t.Error(got)
	}
}

// A holder with room for an answer that is being made is not ended for it, however long that takes. It is ended only if the
// client does not read the answer, or the action waits for the client.
func TestHoldersAreNotEvictedWhileAnswerIsMade(t *testing.T) {
	for name, then := range map[string]func(*cappedPeer){
		"":                              nil,
		"the client takes nothing":      func(p *cappedPeer) { p.Force(Output, 3<<20); p.BeginResponse(3 << 20) },
		"the action waits for a client": func(p *cappedPeer) { p.SetWorking(false) },
		"nothing is made any more":      func(p *cappedPeer) { p.Force(Output, 3<<20); p.ReleaseReservation() },
	} {
		h, now, open := cappedBudget(0, 0)
		h.SetBound(4 << 20)
		p := open(there)
		if got := p.Reserve(Output, 3<<20); got != Granted {
			t.Fatal(got)
		}
		if then != nil {
			then(p)
		}
		*now += int64(10 * time.Second)
		other := open(here)
		other.Force(Input, 64<<10)
		other.Force(Input, 1<<20)
		if want := then != nil; p.ended != want {
			t.Errorf("%q: ended %v, want %v", name, p.ended, want)
		}
	}
}

// Nothing is known of a new small holder: it is not evicted for bodies that have arrived in part, until it is silent for long.
func TestNewHoldersHaveGoodRate(t *testing.T) {
	for _, silent := range []time.Duration{0, 2 * time.Second} {
		h, now, open := cappedBudget(0, 0)
		h.SetBound(4 << 20)
		var bodies []*cappedPeer
		for range 63 {
			p := open(there)
			p.Force(Input, 64<<10)
			bodies = append(bodies, p)
		}
		*now += int64(2 * time.Second)
		p := open(there)
		p.Force(Input, 16<<10)
		*now += int64(silent)
		for _, body := range bodies {
			body.Progress(30<<10, 30<<10)
		}
		open(here).Force(Input, 64<<10)
		if n := h.Ended(); n != 1 {
			t.Fatalf("silent for %v: got %d were ended, want one", silent, n)
		}
		if want := silent > 0; p.ended != want {
			t.Errorf("silent for %v: ended %v, want %v", silent, p.ended, want)
		}
	}
}

// A reservation is not charged again when the memory it was made for is charged.
func TestMove(t *testing.T) {
	h, _, open := cappedBudget(0, 0)
	h.SetBound(1 << 20)
	p := open(there)
	p.Force(Input, 64<<10)
	p.ReserveForOutput(Input, 64<<10)
	if got := p.reserveTo(40 << 10); got != Granted || p.Held() != 64<<10 || h.HeldFor(Body) != 40<<10 {
		t.Errorf("a part of it: got %v, %d bytes", got, p.Held())
	}
	if got := p.reserveTo(80 << 10); got != Granted || p.Held() != 80<<10 || h.HeldFor(Body) != 80<<10 || h.HeldFor(Input) != 0 {
		t.Errorf("all of it and more: got %v, %d bytes", got, p.Held())
	}
	p.EndRequest()
	p.Close()
	if held := h.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// A body that waits asks for the same number of bytes again, of which it takes those reserved for output only once.
func TestBodiesThatWaitTakeRoomOfAnswersOnce(t *testing.T) {
	h, _, open := cappedBudget(0, 0)
	h.SetBound(1 << 20)
	holder, p := open(there), open(here)
	holder.Reserve(Body, 600<<10)
	holder.SetWorking(true)
	p.Reserve(Output, 50<<10)
	for range 3 {
		if got := p.Reserve(Body, 200<<10); got != MustWait || p.Held() != 50<<10 {
			t.Fatalf("%v, %d bytes", got, p.Held())
		}
	}
	holder.EndRequest()
	holder.ReleaseReservation()
	if got := p.Reserve(Body, 200<<10); got != Granted || p.Held() != 200<<10 || h.HeldFor(Body) != 200<<10 {
		t.Errorf("%v, %d bytes, %d of them of the body", got, p.Held(), h.HeldFor(Body))
	}
}

// Memory can be full of small holders. Those of almost nothing are not evicted first, however long they have held it, since
// that would make no room.
func TestTinyHoldersAreNotEvicted(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(2 << 20)
	tiny := make([]*cappedPeer, 100)
	for i := range tiny {
		tiny[i] = open(there)
		tiny[i].Force(Input, 4<<10)
	}
	*now += int64(time.Hour)
	for range 70 {
		open(there).Force(Input, 60<<10)
		*now += int64(100 * time.Millisecond)
	}
	if h.Ended() == 0 {
		t.Error("nobody made room")
	}
	for _, p := range tiny {
		if p.ended {
			t.Fatal("one was ended that holds next to nothing")
		}
	}
}

// One answer larger than the budget is spared. A second one takes its place, and is not evicted as well.
func TestOneAnswerLargerThanTheBoundIsSpared(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(1 << 20)
	var answers []*cappedPeer
	for range 3 {
		p := open(there)
		p.BeginResponse(3 << 20)
		p.Force(Output, 3<<20)
		answers = append(answers, p)
		*now += int64(10 * time.Second)
	}
	small := open(here)
	if got := small.Reserve(Body, 64<<10); got != Granted {
		t.Errorf("one that wants little: got %v", got)
	}
	if !answers[0].ended || !answers[1].ended || answers[2].ended {
		t.Errorf("ended: %v, %v, %v, want all but the last", answers[0].ended, answers[1].ended, answers[2].ended)
	}
}

// A body that has waited for memory is not slow because of the wait: it is not evicted for the next one as soon as it is granted.
func TestWaitingIsNotSlowness(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(8 << 20)
	works, waits, next := open(there), open(there), open(here)
	works.reserveTo(5 << 20)
	works.SetWorking(true)
	waits.reserveTo(16 << 10)
	waits.Progress(16<<10, 3<<20)
	if got := waits.reserveTo(4 << 20); got != MustWait {
		t.Fatalf("without room: got %v", got)
	}
	*now += int64(3 * time.Second)
	works.EndRequest()
	works.ReleaseReservation()
	if got := waits.reserveTo(4 << 20); got != Granted {
		t.Fatalf("with room: got %v", got)
	}
	if got := next.reserveTo(4 << 20); got != MustWait || waits.ended {
		t.Errorf("the next one: got %v; the one before was evicted: %v", got, waits.ended)
	}
	*now += int64(1100 * time.Millisecond)
	if next.reserveTo(4 << 20); !waits.ended {
		t.Error("it was not evicted after a second of silence")
	}
}

// A request that cannot wait passes the first of the queue for a quarter of the maximum wait.
func TestRequestsThatCannotWaitPassQueue(t *testing.T) {
	h, now, open := cappedBudget(0, 0)
	h.SetBound(4 << 20)
	works, first, passes := open(there), open(there), open(here)
	works.reserveTo(2 << 20)
	works.SetWorking(true)
	for i := range 10 {
		if got := first.reserveTo(2 << 20); got != MustWait {
			t.Fatalf("the first: got %v", got)
		}
		granted := passes.TryReserve(Input, 256<<10)
		if want := i < 5; granted != want {
			t.Errorf("after %d half seconds: granted %v, want %v", i, granted, want)
		}
		if granted {
			passes.Release(Input, 256<<10)
		}
		*now += int64(time.Second / 2)
	}
}
