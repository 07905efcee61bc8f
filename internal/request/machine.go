package request

import (
	"fmt"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// Next returns the state that follows the state from on an event: next, the entry of the table of transitions. The initial
// state of a table, 0, never follows another: that entry stands for an event which is illegal in the state. An illegal event
// panics in builds with the race detector, and changes nothing in others.
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
