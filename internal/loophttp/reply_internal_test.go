//go:build linux

package loophttp

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// A legal event leads to the state that the package's documentation names. An illegal one panics in builds with the race detector,
// and changes nothing in others.
func TestStatesOfAnswer(t *testing.T) {
	legal := map[[2]uint8]sending{
		{uint8(unbegun), uint8(begin)}:  begun,
		{uint8(unbegun), uint8(hijack)}: hijacked,
		{uint8(begun), uint8(flush)}:    flushed,
		{uint8(begun), uint8(hijack)}:   hijacked,
		{uint8(flushed), uint8(flush)}:  flushed,
		{uint8(flushed), uint8(hijack)}: hijacked,
		{uint8(hijacked), uint8(flush)}: hijacked,
	}
	for state := range sending(len(sendings)) {
		for event := range sendingEvents {
			want, ok := legal[[2]uint8{uint8(state), uint8(event)}]
			if !ok {
				want = state
			}
			got, panics := state, false
			func() {
				defer func() { panics = recover() != nil }()
				got.on(event)
			}()
			if got != want || panics != (!ok && invariants.Enabled) {
				t.Errorf("event %d in state %d: got state %d, panics %v; want state %d", event, state, got, panics, want)
			}
		}
	}
}
