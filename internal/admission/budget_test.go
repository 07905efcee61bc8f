package admission_test

import (
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestBudgetRefusesWhatDoesNotFit(t *testing.T) {
	b := admission.NewBudget(100)
	if !b.Reserve(admission.Body, 60) || !b.Reserve(admission.Input, 40) {
		t.Fatal("refused although there was room")
	}
	if b.Reserve(admission.Input, 1) {
		t.Error("took more than its bound")
	}
	if b.Held() != 100 || b.HeldFor(admission.Body) != 60 || b.Refused() != 1 {
		t.Errorf("held %d, for bodies %d, refused %d", b.Held(), b.HeldFor(admission.Body), b.Refused())
	}
	b.Force(admission.Output, 50)
	b.Release(admission.Body, 60)
	if b.Reserve(admission.Body, 11) || !b.Reserve(admission.Body, 10) {
		t.Error("what was forced does not count")
	}
	if b.Peak() != 150 {
		t.Errorf("peak %d, want 150", b.Peak())
	}
}

func TestBudgetOfZeroHasNoBound(t *testing.T) {
	b := admission.NewBudget(0)
	if !b.Reserve(admission.Stream, 1<<40) {
		t.Error("refused")
	}
	var none *admission.Budget
	if !none.Reserve(admission.Stream, 1) {
		t.Error("the nil budget refused")
	}
	none.Release(admission.Stream, 1)
}

func TestBudgetIsExactUnderConcurrency(t *testing.T) {
	b := admission.NewBudget(64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for u := range admission.Uses {
				for range 1000 {
					if b.Reserve(u, 9) {
						b.Release(u, 9)
					}
				}
			}
		})
	}
	wg.Wait()
	for u := range admission.Uses {
		if n := b.HeldFor(u); n != 0 {
			t.Errorf("%v: %d bytes left", u, n)
		}
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes held, want none", b.Held())
	}
}

func TestReserveAllocatesNothing(t *testing.T) {
	b := admission.NewBudget(100)
	if n := testing.AllocsPerRun(100, func() {
		if b.Reserve(admission.Input, 1) {
			b.Release(admission.Input, 1)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
