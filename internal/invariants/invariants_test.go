package invariants_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

func TestEndLoan(t *testing.T) {
	b := []byte("borrowed")
	invariants.EndLoan(b)
	want := "borrowed"
	if invariants.Enabled {
		want = "\xCC\xCC\xCC\xCC\xCC\xCC\xCC\xCC"
	}
	if string(b) != want {
		t.Errorf("after EndLoan: got %q, want %q (Enabled is %v)", b, want, invariants.Enabled)
	}
}
