package jsonwire

import (
	"runtime"
	"time"
)

// A large text needs a slot to be decoded, and there is one slot for each processor (GOMAXPROCS). Decoding more texts at the same time
// would not be faster. The slots also limit the memory that all texts together use without a reservation (see the function free).
const (
	largeText = 64 << 10 // minimum length of a large text, in bytes

	// longestWait is the maximum time for which a text waits for a slot. A slot can be occupied for long, because methods of users'
	// types may block.
	longestWait = time.Second
)

// largeTexts contains an element for each slot that is in use.
var largeTexts = make(chan struct{}, runtime.GOMAXPROCS(0))

// acquireSlot waits for a slot for a large text. It returns false after longestWait. The text is then decoded without a slot.
func acquireSlot() bool {
	select {
	case largeTexts <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(longestWait)
	defer wait.Stop()
	select {
	case largeTexts <- struct{}{}:
		return true
	case <-wait.C:
		return false
	}
}

// releaseSlot releases the slot if had, the result of acquireSlot, is true.
func releaseSlot(had bool) {
	if had {
		<-largeTexts
	}
}
