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
	MustWait         // ask again, see Acquire
	NoRoom
)

const (
	// patience is the time, in ns, after which requests that wait are evicted for the first of the queue.
	patience = int64(time.Second)

	// passShare is the part of MaxWait, as a divisor, for which the first of the queue is passed by requests that cannot wait.
	passShare = 4

	// askEvery is the interval at which a goroutine asks again without notice. A request that has not asked again for staleAfter, in
	// ns, does not delay others.
	askEvery   = 250 * time.Millisecond
	staleAfter = int64(4 * askEvery)

	// smallShare is the divisor of the bound that holders of more than Small leave to the others. slackShare is that of the
	// permitted excess, see slack.
	smallShare = 4
	slackShare = 8

	// takeAgain is the number of evictions for one small request: memory that others release for it can be reserved by any
	// account in between.
	takeAgain = 8
)

// A waiter is a request for memory that waits. The lock is the budget's.
type waiter struct {
	account *Account
	want    int64         // bytes
	since   int64         // start of the wait
	leads   int64         // time since which it is the first of the queue, 0 if it is not
	asked   int64         // time of its latest question
	woken   chan struct{} // receives when it may ask again, of capacity 1; nil for a request without a goroutine
}

// Reserve requests n bytes for a body or for output before they are filled. A holder that must wait asks again, and calls
// Unwait if it gives up. Bytes for a body belong to the request until EndRequest. They are taken from a reservation for output
// first, since an answer is mostly made after the body is no longer needed; otherwise requests that hold the one would wait for
// each other to get the other. Force takes output from its reservation until ReleaseReservation.
func (a *Account) Reserve(u Use, n int64) Outcome { return a.request(u, n, true) }

// request is Reserve for a holder that can wait, or not.
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

// TryReserve is Reserve without waiting. It passes the requests in the queue for a while, see rule 2, since its caller mostly holds
// memory that is free sooner with the rest.
func (a *Account) TryReserve(u Use, n int64) bool {
	outcome := a.request(u, n, false)
	if outcome == MustWait {
		a.Refuse()
	}
	return outcome == Granted
}

// ReserveBeside is TryReserve for n bytes beside the body of the current request. done reports that the body has been read: the
// server works for the request from here on. It returns false also if the holder is being evicted.
func (a *Account) ReserveBeside(n int64, done bool) bool {
	if n > 0 && !a.TryReserve(Body, min(n, math.MaxInt64/2)) {
		return false
	}
	if done {
		return a.SetWorking(true)
	}
	return !a.Evicted()
}

// takeReserved takes up to n bytes for a body from the reservation for output, and returns their number. It reports false, and takes
// none, if the cap of the connection does not permit them.
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

// granted records what n reserved bytes, and others from the reservation for output, are for.
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

// reserveLarge is reserve for a holder of more than Small: it may have to wait.
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

// grant reserves n bytes if they fit, with a bound larger by beyond bytes.
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
	case !a.set.reserve(u, n, b.maxConnection): // others of the set were first
		b.force(u, -n)
		a.meets(PartsCap)
	default:
		a.add(n)
		return true
	}
	a.address.add(-n)
	return false
}

// grantLarge is grant for a holder of more than Small. It does not pass an earlier request, unless waits is false and that has not been
// the first of the queue for long.
func (b *Budget) grantLarge(a *Account, u Use, n int64, waits bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if first := b.first(now); first != nil && first.account != a && (waits || now-first.leads >= int64(b.maxWait())/passShare) {
		return false
	}
	return b.overLarge(a, n) <= 0 && b.grant(a, u, n, 0)
}

// enqueue puts a request for n bytes in the queue, or updates it. It reports whether it is the first, and since when it waits.
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

// first returns the first of the queue, nil if none waits. It skips requests that wait for their own address, or do not ask
// again. b.mu is held.
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
		b.wakeFirst(true) // another one is the first now
	}
}

// Refuse is Unwait for an account that must not wait and is refused.
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

// wakeFirst wakes the first of the queue if there may be memory for it, or always, and requests that wait for their address.
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

// wake has the request ask again. The lock of the budget is held.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Acquire is Reserve for callers that may block: it returns when the bytes are granted or refused, or with MustWait when over
// reports that the result is no longer needed. over is called when done is closed, and periodically.
func (a *Account) Acquire(u Use, n int64, done <-chan struct{}, over func() bool) Outcome {
	look := time.NewTicker(min(askEvery, a.budget.maxWait())) // slow holders are found without a release
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

// wakes returns the channel that receives when the account may ask again.
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

// WaitingFor returns the time for which the first of the queue has been waiting; 0 if none waits.
func (b *Budget) WaitingFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return 0
	}
	return max(time.Duration(b.clock()-b.queue[0].since), 1)
}
