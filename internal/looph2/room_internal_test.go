//go:build linux

package looph2

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Requests that wait for room take at most a part of the budget together; each connection may always have one.
func TestRequestsThatWaitForRoomAreBounded(t *testing.T) {
	const most = 10
	h := &Handler{server: &exchange.Server{Budget: admission.NewBudget(awaitingShare * most * waitingCost)}}
	greedy, modest := &session{h: h}, &session{h: h}
	for i := range 2 * most {
		if got, want := greedy.beginAwaiting(), i < most; got != want {
			t.Fatalf("request %d may wait: %v", i, got)
		}
	}
	if !modest.beginAwaiting() || modest.beginAwaiting() {
		t.Error("another connection may have no waiting request, or two")
	}
	modest.endAwaiting()
	for range most {
		greedy.endAwaiting()
	}
	if n := h.awaiting.Load() + greedy.awaiting.Load() + modest.awaiting.Load(); n != 0 {
		t.Errorf("%d are left", n)
	}
	h.server.Budget.SetBound(0)
	for range 2 * most {
		if !greedy.beginAwaiting() {
			t.Fatal("one may not wait, where there is no bound")
		}
	}
}
