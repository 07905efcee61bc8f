package memory

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// An Outcome is the result of a request for memory.
type Outcome uint8

const (
	Granted  Outcome = iota
	MustWait         // call again later, see Acquire
	NoRoom
)

const (
	// lastWaitersAfter is the time, in ns, for which the first request of the queue must have waited before other waiting
	// requests are evicted for it.
	lastWaitersAfter = int64(time.Second)

	// passShare is the divisor of MaxWait that gives the time for which requests that cannot wait may pass the first of the
	// queue.
	passShare = 4

	// askEvery is the interval at which a waiting goroutine tries again if it is not woken. A waiting request that has not tried
	// again for staleAfter, in ns, does not delay other requests.
	askEvery   = 250 * time.Millisecond
	staleAfter = int64(4 * askEvery)

	// smallShare is the divisor of the bound that gives the part which large holders leave free. slackShare is the divisor that
	// gives the permitted excess, see slack.
	smallShare = 4
	slackShare = 8

	// takeAgain is the maximum number of rounds of eviction for one small request. There may be several rounds, because other
	// accounts can reserve the released memory first.
	takeAgain = 8
)

// A waiter is a request for memory that waits. It is guarded by the lock of the budget.
type waiter struct {
	account *Account
	want    int64         // bytes
	since   int64         // start of the wait
	leads   int64         // time since which the request is the first of the queue, 0 if it is not
	asked   int64         // time of the latest call of Reserve for it
	woken   chan struct{} // gets a value when Reserve should be called again; capacity 1; nil if no goroutine waits
}

// Reserve requests n bytes for a body or for output before the memory is filled. If the result is MustWait, the holder calls
// Reserve again later, or Unwait if it gives up. Bytes for a body stay reserved until EndRequest. They are first taken from a
// reservation for output, since the answer is mostly made when the body is no longer needed. Otherwise requests that hold one of
// the two would wait for each other to get the other. Force for output uses the reservation, until ReleaseReservation.
func (a *Account) Reserve(u Use, n int64) Outcome { return a.request(u, n, true) }

// request is Reserve. waits tells whether the holder can wait.
func (a *Account) request(u Use, n int64, waits bool) Outcome {
	reserved, ok := a.takeReserved(u, n)
	n -= reserved
	outcome := NoRoom
	switch {
	case ok && n <= 0:
		outcome = Granted
	case ok:
		outcome = a.reserve(u, n, waits)
	}
	switch {
	case outcome == Granted:
		a.granted(u, n, reserved)
	case reserved > 0:
		a.set.add(Body, -reserved)
		a.addReserved(reserved)
	}
	if outcome == NoRoom {
		a.budget.refused.Add(1)
	}
	if outcome != MustWait {
		a.Unwait()
	}
	return outcome
}

// TryReserve is Reserve for a caller that cannot wait: if the bytes do not fit, it returns false. It passes the requests in the
// queue for a while, see rule 2, since most callers release other memory sooner if they get these bytes.
func (a *Account) TryReserve(u Use, n int64) bool {
	outcome := a.request(u, n, false)
	if outcome == MustWait {
		a.Refuse()
	}
	return outcome == Granted
}

// ReserveBeside is TryReserve for n bytes in addition to the body of the current request. If done is true, the body has been
// read, and the server works for the request from now on (SetWorking). ReserveBeside also returns false if the holder is being
// evicted.
func (a *Account) ReserveBeside(n int64, done bool) bool {
	if n > 0 && !a.TryReserve(Body, min(n, math.MaxInt64/2)) {
		return false
	}
	if done {
		return a.SetWorking(true)
	}
	return !a.Evicted()
}

// takeReserved takes up to n bytes for a body from the reservation for output, and returns their number. If the cap of the
// connection does not permit them, it takes none and returns false.
func (a *Account) takeReserved(u Use, n int64) (reserved int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if reserved = min(a.reserved, n); u != Body || reserved <= 0 {
		return 0, true
	}
	if !a.set.reserve(Body, reserved, a.budget.maxConnection) {
		a.met = PartsCap
		return 0, false
	}
	a.reserved -= reserved
	return reserved, true
}

// granted records the use of n granted bytes, and of reserved bytes that were taken from the reservation for output.
func (a *Account) granted(u Use, n, reserved int64) {
	switch u {
	case Output:
		a.addReserved(n)
		a.mu.Lock()
		a.making = !a.closed && a.peer.answers == 0
		a.mu.Unlock()
	case Body:
		a.mu.Lock()
		a.body += max(n, 0) + reserved
		a.mu.Unlock()
		a.budget.change(Output, Body, reserved)
	}
}

func (a *Account) reserve(u Use, n int64, waits bool) Outcome {
	b := a.budget
	a.mu.Lock()
	after, over := a.held.Load()+n, a.ending || a.closed
	if !over {
		a.met = NoCap
	}
	a.mu.Unlock()
	if over {
		return NoRoom
	}
	if met := b.overEver(a, u, n); met != NoCap {
		a.meets(met)
		return NoRoom
	}
	if after > Small {
		return b.reserveLarge(a, u, n, waits)
	}
	if b.overAddress(a, n) > 0 {
		if b.makeRoom(a, n, a.address, false); b.overAddress(a, n) > 0 {
			a.meets(AddressCap)
			return NoRoom
		}
	}
	if b.grant(a, u, n, b.ending.Load()) {
		return Granted
	}
	for range takeAgain {
		costliest := b.makeRoom(a, n, nil, false)
		if b.grant(a, u, n, b.ending.Load()+b.slack()) {
			return Granted
		}
		if costliest {
			break
		}
	}
	return NoRoom
}

// reserveLarge is reserve for a holder that is large with the requested bytes, so that it may have to wait.
func (b *Budget) reserveLarge(a *Account, u Use, n int64, waits bool) Outcome {
	if b.grantLarge(a, u, n, waits) {
		return Granted
	}
	now := b.clock()
	first, since := b.enqueue(a, n, now)
	capped := b.overAddress(a, n) > 0
	costliest := false
	switch {
	case capped:
		costliest = b.makeRoom(a, n, a.address, true)
	case first:
		costliest = b.makeRoom(a, n, nil, true)
	}
	switch {
	case b.grantLarge(a, u, n, waits):
		return Granted
	case first && !capped && u == Output && b.mayForce(a, n, now):
		a.forceAnswer(n)
		return Granted
	case costliest:
		return NoRoom
	case now-since >= int64(b.maxWait()):
		if capped {
			a.meets(AddressCap)
		}
		return NoRoom
	}
	return MustWait
}

// grant reserves n bytes if they fit into the bound plus beyond bytes, and into the limits of the address and of the set.
func (b *Budget) grant(a *Account, u Use, n, beyond int64) bool {
	if at := a.address; at != nil {
		most := b.maxAddress
		if a.Held()+n <= Small {
			most += at.ending.Load() // memory that is being freed is free for small holders only
		}
		if !takeUpTo(&at.held, n, most) {
			return false
		}
	}
	switch {
	case !b.reserve(u, n, beyond+b.spared()):
	case !a.set.reserve(u, n, b.maxConnection): // other accounts of the set were faster
		b.force(u, -n)
		a.meets(PartsCap)
	default:
		a.add(n)
		return true
	}
	a.address.add(-n)
	return false
}

// grantLarge is grant for a large holder. It does not pass the first request of the queue, unless waits is false and that request
// has not been the first for long (rule 2).
func (b *Budget) grantLarge(a *Account, u Use, n int64, waits bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if first := b.first(now); first != nil && first.account != a && (waits || now-first.leads >= int64(b.maxWait())/passShare) {
		return false
	}
	return b.overLarge(a, n) <= 0 && b.grant(a, u, n, 0)
}

// enqueue puts a request for n bytes into the queue, or updates the request of the account there. It returns whether the request
// is the first, and since when it waits.
func (b *Budget) enqueue(a *Account, n, now int64) (first bool, since int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.wait == nil {
		a.mu.Lock()
		a.wait = &waiter{account: a, since: now}
		a.updateClock(now)
		a.mu.Unlock()
		b.queue = append(b.queue, a.wait)
		b.waiting.Add(1)
	}
	w := a.wait
	w.want, w.asked = n, now
	return b.first(now) == w, w.since
}

// first returns the first request of the queue, nil if none waits. It skips requests that wait because of the limit of their
// address, requests that have not tried again for staleAfter, and requests of evicted accounts. b.mu is held.
func (b *Budget) first(now int64) *waiter {
	for _, w := range b.queue {
		if now-w.asked < staleAfter && b.overAddress(w.account, w.want) <= 0 && !w.account.Evicted() {
			w.leads = cmp.Or(w.leads, now)
			return w
		}
	}
	return nil
}

// Unwait ends the account's wait for memory.
func (a *Account) Unwait() {
	b := a.budget
	if b.waiting.Load() == 0 {
		return
	}
	now := b.clock()
	b.mu.Lock()
	w := a.wait
	if w != nil {
		b.queue = slices.DeleteFunc(b.queue, func(x *waiter) bool { return x == w })
		b.waiting.Add(-1)
		a.mu.Lock()
		a.wait = nil
		a.updateClock(now)
		a.mu.Unlock()
	}
	b.mu.Unlock()
	if w != nil {
		b.wakeFirst(true) // another request may be the first now
	}
}

// Refuse is Unwait for a request that is refused because it cannot wait. It returns NoRoom.
func (a *Account) Refuse() Outcome {
	a.Unwait()
	a.budget.refused.Add(1)
	return NoRoom
}

// signal wakes requests that may get memory, if some was released.
func (b *Budget) signal() {
	if b.waiting.Load() > 0 {
		b.wakeFirst(false)
	}
}

// wakeFirst wakes the first request of the queue if there may be memory for it, or if always is set. It also wakes requests that
// wait because of the limit of their address.
func (b *Budget) wakeFirst(always bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	first := b.first(now)
	if first != nil && (always || b.mostlyUnread(now) || b.over(first.want)+b.ending.Load() <= 0 && b.overLarge(first.account, first.want) <= 0) {
		first.wake()
	}
	if b.maxAddress > 0 {
		for _, w := range b.queue {
			if w != first && w.account.address != nil {
				w.wake()
			}
		}
	}
}

// wake makes the goroutine of the request call Reserve again. The lock of the budget is held.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Acquire is Reserve for callers that may block. It returns when the bytes are granted or refused. It calls over periodically and
// when done is closed; if over returns true, the bytes are no longer needed, and Acquire returns MustWait.
func (a *Account) Acquire(u Use, n int64, done <-chan struct{}, over func() bool) Outcome {
	look := time.NewTicker(min(askEvery, a.budget.maxWait())) // holders may become slow, which wakes nobody
	defer look.Stop()
	for {
		outcome := a.Reserve(u, n)
		if outcome != MustWait {
			return outcome
		}
		woken := a.wakes()
		select {
		case <-woken:
			continue
		case <-look.C:
		case <-done:
			done = nil
		}
		if over() {
			a.Unwait()
			return MustWait
		}
	}
}

// wakes returns the channel that gets a value when the account should call Reserve again.
func (a *Account) wakes() <-chan struct{} {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	w := a.wait
	if w == nil {
		return nil
	}
	if w.woken == nil {
		w.woken = make(chan struct{}, 1)
		w.woken <- struct{}{} // memory may have been released meanwhile
	}
	return w.woken
}

// Waiting returns the number of requests that wait for memory.
func (b *Budget) Waiting() int { return int(b.waiting.Load()) }

// WaitingFor returns how long the first request of the queue has been waiting; 0 if none waits.
func (b *Budget) WaitingFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return 0
	}
	return max(time.Duration(b.clock()-b.queue[0].since), 1)
}
