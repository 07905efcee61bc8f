package admission_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestFreeList(t *testing.T) {
	var l admission.FreeList[string]
	if got, ok := l.Take(); ok {
		t.Errorf("an empty list gave %q", got)
	}
	for _, thing := range []string{"first", "second", "one too many"} {
		l.Keep(thing, 2)
	}
	for _, want := range []string{"second", "first"} {
		if got, ok := l.Take(); !ok || got != want {
			t.Errorf("got %q, %v, want %q", got, ok, want)
		}
	}
	if got, ok := l.Take(); ok {
		t.Errorf("got %q, which was one too many", got)
	}
	l.Keep("third", 2)
	if all := l.TakeAll(); len(all) != 1 || all[0] != "third" || len(l.TakeAll()) != 0 {
		t.Errorf("all of them were %q", all)
	}
}
