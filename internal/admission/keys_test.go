package admission_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestKeys(t *testing.T) {
	k := admission.NewKeys(2)
	for i, step := range []struct {
		key  string
		want bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"", true}} {
		if got := k.Take(step.key); got != step.want {
			t.Errorf("step %d: Take(%q) = %v", i, step.key, got)
		}
	}
	k.Release("a")
	if !k.Take("a") || k.Take("a") {
		t.Error("a released place is not one place")
	}
	for _, key := range []string{"a", "a", "b", ""} {
		k.Release(key)
	}
	if n := k.Len(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestKeysForgetManyAtOnce(t *testing.T) {
	k := admission.NewKeys(3)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 3 {
				for i := range 20_000 {
					if key := strconv.Itoa(g*20_000 + i); !k.Take(key) {
						t.Errorf("no place for %s", key)
						return
					}
				}
				for i := range 20_000 {
					k.Release(strconv.Itoa(g*20_000 + i))
				}
			}
		})
	}
	all.Wait()
	if n := k.Len(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
