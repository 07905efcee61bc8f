package jsonwire

import (
	"runtime"
	"time"
)

// The number of large texts that are decoded at the same time is limited to the number of processors. More would not be faster, and the
// part of their values that is not reserved (see free) would add up.
const (
	largeText = 64 << 10 // bytes

	// longestWait is the maximum time that a text waits for a slot. Methods of users' types may block while they have one.
	longestWait = time.Second
)

// largeTexts has an element for each large text that is being decoded.
var largeTexts = make(chan struct{}, runtime.GOMAXPROCS(0))

// acquireSlot waits for a slot for a large text. It returns false if it has waited too long.
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

// releaseSlot returns the slot of a text that has one.
func releaseSlot(had bool) {
	if had {
		<-largeTexts
	}
}
