package admission

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A Holder owns an account: it is a connection.
type Holder interface {
	// End makes the holder release what it holds, in the clearest way that its state permits: by a refusal if no response has
	// begun, otherwise by closing. It is called at most once for an account, on any goroutine, and must not block. The account
	// is [Account.Ending] until it is closed.
	End(a *Account)

	// RemoteAddr returns the address of the peer, for statistics.
	RemoteAddr() netip.AddrPort
}

// An Account records the memory that the server holds for one connection. All methods are safe for concurrent use.
type Account struct {
	holders *Holders
	holder  Holder
	source  *source
	group   *Group // nil for an account outside of groups

	prevOf, nextOf *Account // list of the source; guarded by the lock of its shard

	held atomic.Int64 // changes under mu

	mu        sync.Mutex
	slot      int32 // index in holders.large, or -1; guarded by holders.mu
	relisting int32 // goroutines in relist; the account is not reused before they have finished

	since    int64 // time at which it began to hold something
	left     int64 // bytes that the peer still has to send or to read; -1: unknown
	stopped  int64 // time at which the peer's clock was stopped, because the server does not wait for the peer; 0: the clock runs
	body     int64 // bytes of the current request's body, see ReserveBody
	beside   int64 // bytes of body that are for other memory of the request, see ReserveBeside
	ahead    int64 // bytes reserved for future output, see ReserveAhead
	much     int64 // its contribution to holders.much
	promised int64 // maximum bytes of a response that is made without a reservation, see Probe
	waits    int64 // start of its wait for memory; 0 if it does not wait
	answers  int64 // time since which its peer is to read a response; 0 if there is none

	ending   bool
	counted  bool // ending has been counted, see CountEnd
	closed   bool
	unlinked bool // closed and removed from all lists
	lent     bool // other goroutines may still refer to it: it is not reused
	lone     bool // its bytes are spared
	working  bool // its clock is stopped because the server works
	met      Cap  // cap that refused it, see Met
	modest   bool // while it waits: its address asks for at most half of the budget, or it is new, or it has its group's turn
	turn     bool // it has its group's turn
	newcomer bool // it waits to be a probe, and its address holds nothing else
	blocked  bool // its promise is counted in holders.blocked, see ProbeBlocks
	unknown  bool // the length of its body is unknown
	lined    bool // it is in holders.line; changes require the lock of the line, too
	making   bool // its response is being made, with a reservation, see makes

	line inLine

	// Bytes that the peer has sent or read in the current window and in the previous one.
	began, before     int64 // starts of the windows
	moved, movedFirst int64 // bytes
	last              int64 // time of the peer's last progress
}

// The rate of a holder is measured over the previous and the current window. The prior is the assumed rate at the beginning.
const (
	window     = int64(5 * time.Second)
	priorBytes = 4 << 10
	priorTime  = int64(50 * time.Millisecond)
)

// A peer has a good rate if the rest is expected within goodTime, in ns, and the peer was not silent for longer than goodPause,
// in ns. A peer that has just got a response, or has just begun to hold a little, has a good rate for graceTime.
const (
	goodTime  = int64(4 * time.Second)
	goodPause = int64(time.Second)
	graceTime = int64(500 * time.Millisecond)
)

// Force charges n bytes that are held already and cannot be refused. If they do not fit, holders are evicted, possibly this
// account. Output is taken from its reservation first.
func (a *Account) Force(u Use, n int64) {
	if u == Output {
		n -= a.takeAhead(n)
	}
	if n == 0 {
		return
	}
	a.holders.budget.Force(u, n)
	a.group.note(u, n)
	a.add(n)
	a.holders.balance(a, u)
}

// takeAhead takes up to n bytes from the reservation for output and returns their number.
func (a *Account) takeAhead(n int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n, a.ahead)
	a.ahead -= n
	return n
}

// Ahead is ReserveAhead without waiting.
func (a *Account) Ahead(n int64) bool {
	outcome := a.ReserveAhead(n)
	if outcome == MustWait {
		a.Refuse()
	}
	return outcome == Granted
}

// Release releases n bytes. It returns the bytes that all accounts still hold for the use.
func (a *Account) Release(u Use, n int64) (left int64) {
	if n == 0 {
		return a.holders.budget.HeldFor(u)
	}
	h := a.holders // an account that holds nothing may be reused
	left = h.budget.Release(u, n)
	a.group.note(u, -n)
	a.add(-n)
	if n > leastShare {
		h.signalLine()
	}
	h.signal()
	return left
}

// add records n more bytes, which the budget has counted already.
func (a *Account) add(n int64) {
	h := a.holders
	a.source.held.Add(n)
	if a.group != nil {
		a.group.all.Add(n)
	}
	a.mu.Lock()
	held := a.held.Add(n)
	was := held - n
	switch {
	case was == 0:
		a.begin(h.now())
		h.count.Add(1)
	case held == 0:
		h.count.Add(-1)
	}
	if a.ending {
		h.ending.Add(n)
		a.source.ending.Add(n)
	}
	if a.lone {
		h.spared.Add(n)
	}
	a.weigh()
	crossed := (was > leastShare) != (held > leastShare)
	over := held == 0 && a.isOver()
	if crossed {
		a.relisting++
	}
	a.mu.Unlock()
	if crossed {
		h.relist(a)
		a.mu.Lock()
		a.relisting--
		a.mu.Unlock()
	}
	if over {
		h.unlink(a)
	}
}

// isOver reports true once for a closed account that holds nothing and is to be removed from all lists. A goroutine that asked
// during the close may have held something for a moment. a.mu is held.
func (a *Account) isOver() bool {
	first := a.closed && !a.unlinked
	a.unlinked = a.unlinked || first
	return first
}

// weigh corrects the account's contribution to holders.much. a.mu is held.
func (a *Account) weigh() {
	much := a.held.Load()
	if much <= leastShare || a.ending || a.lone {
		much = 0
	}
	if much != a.much {
		a.holders.much.Add(much - a.much)
		a.much = much
	}
}

// begin starts the clock of an account that held nothing.
func (a *Account) begin(now int64) {
	a.since = now
	if a.answers == 0 {
		a.left = -1
	}
	a.measure(now)
	if a.stopped != 0 {
		a.stopped = now
	}
}

// measure starts the measurement of the peer's rate.
func (a *Account) measure(now int64) {
	a.last, a.began, a.before = now, now, now
	a.moved, a.movedFirst = 0, 0
}

// Answers records that the peer is to read a response with left bytes. Its rate counts from here on.
func (a *Account) Answers(left int64) {
	now := a.holders.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left, a.answers, a.making = left, now, false
	a.measure(now)
	if a.stopped != 0 {
		a.stopped = now
	}
}

// Answered records that the peer has read all of the response.
func (a *Account) Answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = 0
}

// Moved records that the peer has sent or read n bytes, and that left bytes remain (-1: unknown).
func (a *Account) Moved(n, left int64) {
	now := a.holders.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = left
	if n == 0 {
		return
	}
	if now-a.began >= window {
		a.before, a.movedFirst = a.began, a.moved
		a.began, a.moved = now, 0
	}
	a.moved += n
	a.last = now
}

// Working stops the peer's clock while the server works for the request, and restarts it. A holder with a stopped clock is not
// evicted. It returns false if the holder is being evicted already.
func (a *Account) Working(working bool) bool {
	now := a.holders.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.making = a.making && working
	if a.working != working {
		a.working = working
		if working {
			a.stop(now)
		} else {
			a.start(now)
		}
	}
	return !a.ending
}

// stop stops the peer's clock; start continues it as if no time had passed.
func (a *Account) stop(now int64) {
	if a.stopped == 0 {
		a.stopped = now
	}
}

func (a *Account) start(now int64) {
	if a.stopped == 0 || a.working || a.waits != 0 {
		return
	}
	by := now - a.stopped
	a.began, a.before, a.last = a.began+by, a.before+by, a.last+by
	a.stopped = 0
}

// expected returns the time in ns until the held memory is expected to be free. It is at least the time for which the peer has
// been silent. a.mu is held.
func (a *Account) expected(now int64) float64 {
	if a.stopped != 0 {
		now = a.stopped
	}
	moved, since := a.moved+a.movedFirst, a.before
	if now-a.began >= 2*window {
		moved, since = a.moved, a.began // the previous window ended long ago
	}
	rate := float64(moved+priorBytes) / float64(now-since+priorTime)
	left := a.left
	if left < 0 {
		left = a.held.Load() // assume as much again
	}
	return max(float64(left)/rate, float64(now-a.last))
}

// Standings of accounts for eviction, in the order of eviction.
const (
	slow      = iota // it holds its memory for long
	sending          // its peer sends at a good rate; the request can be refused
	answering        // its peer reads at a good rate; the response would be truncated
)

// standing returns the account's standing. A peer has a good rate if the rest is expected within goodTime and it has made
// progress lately. An account that has just got a response, or holds a little since recently, is treated as one with a good
// rate. a.mu is held.
func (a *Account) standing(now int64) int {
	switch {
	case a.answers != 0 && now-a.answers < graceTime:
		return answering
	case a.answers == 0 && a.moved+a.movedFirst == 0 && now-a.since < graceTime && a.held.Load() <= leastShare:
		return sending
	}
	at := now
	if a.stopped != 0 {
		at = a.stopped
	}
	switch {
	case a.moved+a.movedFirst == 0 || at-a.last > goodPause || a.expected(now) > float64(goodTime):
		return slow
	case a.answers != 0:
		return answering
	}
	return sending
}

// cost returns the cost of keeping the holder, in byte-seconds. a.mu is held.
func (a *Account) cost(now int64) float64 { return float64(a.held.Load()) * a.expected(now) / 1e9 }

// Held returns the bytes that the account holds.
func (a *Account) Held() int64 { return a.held.Load() }

// Body returns the bytes reserved by ReserveBody, without those of ReserveBeside.
func (a *Account) Body() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body - a.beside
}

// HeldByAddress returns the bytes that all accounts of the peer's address hold. It may be called until the account is closed.
func (a *Account) HeldByAddress() int64 { return a.source.held.Load() }

// Ending reports whether the holder is being evicted.
func (a *Account) Ending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// CountEnd reports true once, to the goroutine that carries the eviction out and counts it. A chosen holder may still release
// its memory by itself.
func (a *Account) CountEnd() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.ending && !a.counted
	a.counted = a.counted || first
	return first
}

// Spare cancels the eviction of a holder that has released everything by itself. It returns false if something is still held.
func (a *Account) Spare() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held.Load() != 0 {
		return false
	}
	a.ending = false
	a.weigh()
	return true
}

// Lend returns the account for use by goroutines other than the connection's. After the account is closed they get no memory.
func (a *Account) Lend() *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent = true
	return a
}

// Holder returns the owner of the account.
func (a *Account) Holder() Holder { return a.holder }

// CloseIdle closes an account that holds nothing and is not being evicted, and reports whether it did. The connection opens
// another one when needed. A reservation for output is released.
func (a *Account) CloseIdle() bool {
	a.EndAhead()
	a.mu.Lock()
	idle := a.held.Load() == 0 && !a.ending && a.waits == 0
	if idle {
		a.closed, a.unlinked = true, true
		a.comes(false)
	}
	again := idle && !a.lent && a.relisting == 0
	a.mu.Unlock()
	a.endsBody() // a closed account must not stay in the line
	if idle {
		a.holders.unlink(a)
	}
	if again {
		accounts.Put(a)
	}
	return idle
}

// Close ends the connection's use of the account. Memory that is still in use by running code is released when that code ends.
func (a *Account) Close() {
	a.Unwait()
	a.mu.Lock()
	a.closed = true
	a.comes(false)
	over := a.held.Load() == 0 && a.isOver()
	a.mu.Unlock()
	a.endsBody()
	a.EndProbe()
	if over {
		a.holders.unlink(a)
		return
	}
	a.EndAhead() // later output finds the account closed
}
