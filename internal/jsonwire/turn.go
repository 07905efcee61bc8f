package jsonwire

import (
	"runtime"
	"time"
)

// As many large texts are decoded at once as there are processors. More at once would not be faster, and the part of their
// values that is not reserved (see free) would add up.
const (
	largeText = 64 << 10 // bytes

	// longestWait is the longest time that a text waits. Methods of users' types, which may block, run in a turn.
	longestWait = time.Second
)

// turns holds an element for each large text that is being decoded.
var turns = make(chan struct{}, runtime.GOMAXPROCS(0))

// awaitTurn waits for the turn of a large text. It returns false if it has waited too long.
func awaitTurn() bool {
	select {
	case turns <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(longestWait)
	defer wait.Stop()
	select {
	case turns <- struct{}{}:
		return true
	case <-wait.C:
		return false
	}
}

// endTurn ends the turn of a text that has had one.
func endTurn(had bool) {
	if had {
		<-turns
	}
}
