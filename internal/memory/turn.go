package memory

import "time"

// Requests for large answers wait only if peers read such answers. unread records whether they do: bytes is the size of the large
// answers whose slow peers were evicted, minus the size of the large answers that were read. It is at least 0 and at most the
// part of the bound for large holders. When there was no such eviction for forgetTime, it counts as 0.
type unread struct {
	bytes int64
	at    int64 // time of the latest such eviction
}

const forgetTime = int64(10 * time.Second)

// noteUnread records the eviction of c, if c has a large answer that its slow peer has not read. b.mu is held.
func (b *Budget) noteUnread(c candidate, now int64) {
	if c.unread <= Small {
		return
	}
	if !b.unreadLately(now) {
		b.unread.bytes = 0
	}
	b.unread.bytes, b.unread.at = min(b.unread.bytes+c.unread, b.largeShare()), now
}

// noteRead records that the peer of a large answer of n bytes has read it.
func (b *Budget) noteRead(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread.bytes = max(b.unread.bytes-n, 0)
}

func (b *Budget) unreadLately(now int64) bool {
	return b.unread.bytes > 0 && now-b.unread.at < forgetTime
}

// mostlyUnread reports whether large answers were mostly not read lately. Then the first request of the queue does not wait until
// other answers are read. b.mu is held.
func (b *Budget) mostlyUnread(now int64) bool {
	return b.unreadLately(now) && b.unread.bytes >= b.largeShare()/2
}

// mayForce reports whether the first request of the queue, n bytes for an answer of a, may evict other large holders at once,
// because large answers are mostly not read. The bytes must fit beside the large holders that cannot be evicted.
func (b *Budget) mayForce(a *Account, n, now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mostlyUnread(now) {
		return false
	}
	fixed := a.Held() + n
	for _, o := range b.all {
		held := o.held.Load()
		if held <= Small || o == a {
			continue
		}
		if _, ok := o.candidate(now); !ok {
			fixed += held
		}
	}
	return fixed <= b.largeShare()
}

// forceAnswer charges n bytes for the answer of the first request of the queue, and evicts other holders if they do not fit. It
// removes the request from the queue after the charge.
func (a *Account) forceAnswer(n int64) {
	a.mu.Lock()
	a.making = true // so that it is not evicted itself
	a.mu.Unlock()
	a.charge(Output, n)
	a.Unwait()
	a.budget.balance(a, Output)
}

// largeShare returns the part of the bound that large holders may use, in bytes.
func (b *Budget) largeShare() int64 {
	bound := b.Bound()
	return bound - bound/smallShare
}
