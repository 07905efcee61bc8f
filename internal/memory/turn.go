package memory

import "time"

// Requests for large answers wait while peers read such answers. unread tells whether they do: bytes counts the large answers whose
// slow peers were evicted, minus those read since. It is between 0 and the part of the bound for holders of more than
// Small. It is 0 when there was no such eviction for forgetTime.
type unread struct {
	bytes int64
	at    int64 // time of the latest such eviction
}

const forgetTime = int64(10 * time.Second)

// noteUnread records that a holder is evicted. b.mu is held.
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

// mostlyUnread reports whether large answers were mostly not read lately. Then the first of the queue need not wait for new ones to
// be read. b.mu is held.
func (b *Budget) mostlyUnread(now int64) bool {
	return b.unreadLately(now) && b.unread.bytes >= b.largeShare()/2
}

// mayForce reports whether the first of the queue, which wants n bytes for an answer, need not wait for other answers to be read,
// since they mostly are not. The request may evict all of those. It waits only for memory that cannot be evicted, or is being freed.
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

// forceAnswer charges n bytes for the answer of the first of the queue, and evicts others for them. The next one is the first when
// they are charged.
func (a *Account) forceAnswer(n int64) {
	a.mu.Lock()
	a.making = true // so that it is not evicted itself
	a.mu.Unlock()
	a.charge(Output, n)
	a.Unwait()
	a.budget.balance(a, Output)
}

// largeShare returns the part of the bound for holders of more than Small, in bytes.
func (b *Budget) largeShare() int64 {
	bound := b.Bound()
	return bound - bound/smallShare
}
