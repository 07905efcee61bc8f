package tally_test

import (
	"reflect"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A function that panics does not affect the statistics of others.
func TestPartsPanic(t *testing.T) {
	var parts tally.Parts
	parts.Add("bad", func() any { panic("as requested") })
	parts.Add("good", func() any { return 7 })
	if got, want := parts.Read(), (map[string]any{"bad": "panic: as requested", "good": 7}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
