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

func TestShedNotesAreFewAndMissNothing(t *testing.T) {
	var s admission.Shed
	if since, due := s.Note(admission.SlowBody); !due || since != 1 {
		t.Errorf("the first: %d, %v", since, due)
	}
	for range 5 {
		if _, due := s.Note(admission.SlowBody); due {
			t.Error("a second line within LogEvery")
		}
	}
	if since, due := s.Note(admission.SlowHead); !due || since != 1 {
		t.Errorf("another reason: %d, %v", since, due)
	}
	s.ForgetLines()
	if since, due := s.Note(admission.SlowBody); !due || since != 6 {
		t.Errorf("after LogEvery: %d, %v, want the 6 since the first line", since, due)
	}
	if n := s.Count(admission.SlowBody); n != 7 {
		t.Errorf("%d counted, want 7", n)
	}
	var none *admission.Shed
	if _, due := none.Note(admission.SlowBody); due {
		t.Error("a nil Shed wants a line")
	}
}
