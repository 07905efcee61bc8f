package request

import (
	"fmt"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// Next returns the state after an event in the state from. next is the entry for both in the table of transitions. No event leads to
// the initial state 0, so the entry 0 means that the event is illegal in the state. An illegal event panics in builds with the race
// detector; in other builds it does not change the state.
func Next[S, E ~uint8](from, next S, event E) S {
	if next == 0 {
		illegal(from, event)
		return from
	}
	return next
}

func illegal[S, E ~uint8](from S, event E) {
	if invariants.Enabled {
		panic(fmt.Sprintf("request: event %d in state %d of %T", event, from, from))
	}
}
