package admission_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestShedCountsByReason(t *testing.T) {
	var s admission.Shed
	seen := make(map[string]bool)
	for r := range admission.Reasons {
		if seen[r.String()] || r.String() == "" {
			t.Errorf("reason %d: the name %q is empty or taken", r, r)
		}
		seen[r.String()] = true
		if s.Count(r) != 0 || s.Add(r) != 1 || s.Add(r) != 2 || s.Count(r) != 2 {
			t.Errorf("%v: %d after two", r, s.Count(r))
		}
	}
	if len(seen) == 0 {
		t.Error("no reasons")
	}
	var none *admission.Shed
	if none.Add(admission.QueueTime) != 0 || none.Count(admission.QueueTime) != 0 {
		t.Error("a nil Shed counts")
	}
}
