package admission

import "testing"

// Memory beside a body is charged in addition to the body, even if it is reserved first, and until the request ends.
func TestMemoryBesideABody(t *testing.T) {
	h, _, open := cappedHolders(0, 0)
	a := open(here)
	held := func(want int64) {
		t.Helper()
		if got := a.Held(); got != want {
			t.Errorf("%d bytes are held, want %d", got, want)
		}
	}
	for range 2 {
		if !a.ReserveBeside(30<<10, false) {
			t.Fatal("no room beside a body that has not come")
		}
		if a.ReserveBody(20<<10) != Granted {
			t.Fatal("no room for the body")
		}
		held(50 << 10)
		if a.Body() != 20<<10 {
			t.Errorf("the body has %d bytes", a.Body())
		}
		if !a.ReserveBeside(10<<10, true) {
			t.Fatal("no room beside the body")
		}
		held(60 << 10)
		for range 3 {
			if a.ReserveBeside(1<<62, true) {
				t.Error("there is room for more than the budget")
			}
		}
		held(60 << 10)
		if a.ReserveBody(25<<10) != Granted {
			t.Fatal("no room for more of the body")
		}
		held(65 << 10)
		a.EndRequest()
		held(65 << 10) // for the answer
		a.EndAhead()
		held(0)
	}
	if h.budget.Held() != 0 {
		t.Errorf("%d bytes of the budget are held", h.budget.Held())
	}
}
