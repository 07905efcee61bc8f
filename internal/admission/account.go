package admission

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A Holder is who an account belongs to: a connection.
type Holder interface {
	// End has the holder let go of what it holds, in the clearest way that its state
	// allows: a refusal if no answer has begun, else it is cut. It is called at most once
	// for an account, on any goroutine, and must not wait. The account is
	// [Account.Ending] then, until it is closed.
	End(a *Account)

	// RemoteAddr returns the address of the peer, for statistics.
	RemoteAddr() netip.AddrPort
}

// An Account is what one connection makes the server hold. All methods are safe for
// concurrent use.
type Account struct {
	holders *Holders
	holder  Holder
	source  *source
	group   *Group // nil: it is bounded alone

	prevOf, nextOf *Account // of the source; under the lock of its shard

	held atomic.Int64 // changes under mu

	mu        sync.Mutex
	slot      int32 // in holders.large, -1: not there; under holders.mu
	relisting int32 // goroutines that look whether it holds much, until when it is not used again

	since    int64 // when it began to hold something
	left     int64 // bytes that its peer still has to send or to take; -1: unknown
	stopped  int64 // when the clock of the peer was stopped, because the peer is not waited for; 0: it runs
	body     int64 // bytes of the present request's body, see ReserveBody
	beside   int64 // bytes of that for other memory of the request, see ReserveBeside
	ahead    int64 // bytes reserved for output that is to come, see ReserveAhead
	much     int64 // what it adds to holders.much
	promised int64 // bytes at the most of an answer that is made without room, see Probe
	waits    int64 // since when it waits for room, 0 if it does not
	answers  int64 // since when its peer is to take an answer, 0 if it is not

	ending   bool
	counted  bool // ... and that has been counted, see CountEnd
	closed   bool
	unlinked bool // ... and it has been taken out of everything
	lent     bool // others than the connection may still have it: it is not used again
	lone     bool // its bytes are spared
	working  bool // it is stopped because the server works
	met      Cap  // see Met
	modest   bool // while it waits: its address asks for no more than half of the budget, or it is new, or it has its group's turn
	turn     bool // it has
	newcomer bool // it waits to be a probe, and its address holds nothing else
	blocked  bool // what it has promised counts apart, see ProbeBlocks
	unknown  bool // nobody has announced how long its body is
	lined    bool // it is in holders.line, whose lock is held too when this changes
	making   bool // its answer is being made, with room reserved for it, see makes

	line inLine

	// What the peer has sent or taken: in this window, and in the one before.
	began, before     int64 // when they began
	moved, movedFirst int64 // bytes
	last              int64 // when the peer moved something
}

// A holder's rate is measured over the last window and the present one. The prior is what
// is believed of one that has just begun.
const (
	window     = int64(5 * time.Second)
	priorBytes = 4 << 10
	priorTime  = int64(50 * time.Millisecond)
)

// A peer moves at a good rate if all that is left is expected to have moved within goodTime,
// and it is not silent for longer than goodPause, in ns. Who has just got an answer, or has just begun to hold
// a little, is believed to for graceTime.
const (
	goodTime  = int64(4 * time.Second)
	goodPause = int64(time.Second)
	graceTime = int64(500 * time.Millisecond)
)

// Force takes n bytes that are held already and cannot be refused, and has room made for
// them if there is none, be it by ending this account. Output takes what was reserved for
// it first.
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

// takeAhead takes up to n bytes of what is reserved for output, and returns how many.
func (a *Account) takeAhead(n int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n, a.ahead)
	a.ahead -= n
	return n
}

// Ahead is ReserveAhead for one that does not wait.
func (a *Account) Ahead(n int64) bool {
	outcome := a.ReserveAhead(n)
	if outcome == MustWait {
		a.Refuse()
	}
	return outcome == Granted
}

// Release gives n bytes back. It reports how many the use has left over all accounts.
func (a *Account) Release(u Use, n int64) (left int64) {
	if n == 0 {
		return a.holders.budget.HeldFor(u)
	}
	h := a.holders // when nothing is held any more, a may be another's
	left = h.budget.Release(u, n)
	a.group.note(u, -n)
	a.add(-n)
	if n > leastShare {
		h.signalLine()
	}
	h.signal()
	return left
}

// add notes that n bytes more are held, of which the budget knows already.
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

// isOver reports whether a closed account, which holds nothing, is to be taken out of everything: true once, since
// one that asked when it was closed may have got something for a moment. a.mu is held.
func (a *Account) isOver() bool {
	first := a.closed && !a.unlinked
	a.unlinked = a.unlinked || first
	return first
}

// weigh corrects what the account adds to those that hold much and stay. a.mu is held.
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

// measure begins to measure the peer.
func (a *Account) measure(now int64) {
	a.last, a.began, a.before = now, now, now
	a.moved, a.movedFirst = 0, 0
}

// Answers notes that the peer is to take an answer, of which so many bytes are left: from
// here on it is judged by that.
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

// Answered notes that it has taken all of it.
func (a *Account) Answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = 0
}

// Moved notes that the peer has sent or taken n bytes of what is waited for, and how many
// are left (-1: unknown).
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

// Working says whether the peer has done its part for now, and the server works. While
// it does, the holder is not ended. It reports false if it is being ended already.
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

// stop stops the clock of the peer; start lets it run again, as if it had not stood.
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

// expected returns in how many ns what is held is expected to be free. It takes at
// least as long as the peer has been silent: who is silent for long will be. a.mu is held.
func (a *Account) expected(now int64) float64 {
	if a.stopped != 0 {
		now = a.stopped
	}
	moved, since := a.moved+a.movedFirst, a.before
	if now-a.began >= 2*window {
		moved, since = a.moved, a.began // the window before is long over
	}
	rate := float64(moved+priorBytes) / float64(now-since+priorTime)
	left := a.left
	if left < 0 {
		left = a.held.Load() // as much again
	}
	return max(float64(left)/rate, float64(now-a.last))
}

// How an account stands when somebody is to be ended, the first first.
const (
	slow      = iota // it will hold what it holds for long
	sending          // its peer sends at a good rate; it can be refused
	answering        // its peer takes at a good rate what has begun, which could only be cut off
)

// standing says how the account stands. Its peer moves at a good rate if all will be done in
// goodTime and it has moved something lately; one that has just got an answer is believed to, and so is one
// that holds little and has just begun to. a.mu is held.
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

// cost returns what it costs to let the holder go on, in byte-seconds. a.mu is held.
func (a *Account) cost(now int64) float64 { return float64(a.held.Load()) * a.expected(now) / 1e9 }

// Held returns how many bytes it holds.
func (a *Account) Held() int64 { return a.held.Load() }

// Body returns the bytes reserved by ReserveBody, without those of ReserveBeside.
func (a *Account) Body() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body - a.beside
}

// HeldByAddress returns how many bytes all accounts of its peer's address hold. It may be called
// until the account is closed.
func (a *Account) HeldByAddress() int64 { return a.source.held.Load() }

// Ending reports whether the holder is being ended.
func (a *Account) Ending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// CountEnd reports whether the end of the holder is to be counted by its caller, who carries it out: true once.
// One that is chosen may still let go by itself.
func (a *Account) CountEnd() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.ending && !a.counted
	a.counted = a.counted || first
	return first
}

// Spare takes the end of a holder back that has let go of everything by itself meanwhile.
// It reports false if it has not.
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

// Lend returns the account, for others than its connection, who may ask it for memory also
// when it is closed: then they get none.
func (a *Account) Lend() *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent = true
	return a
}

// Holder returns whose account it is.
func (a *Account) Holder() Holder { return a.holder }

// CloseIdle closes the account if it holds nothing and is not being ended; the connection
// opens another when it needs one. It reports whether it did. What was reserved for output
// is given back.
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
	a.endsBody() // once it is closed nobody has it stand in line any more
	if idle {
		a.holders.unlink(a)
	}
	if again {
		accounts.Put(a)
	}
	return idle
}

// Close says that the connection is over. What is still held, by code that runs on, is
// given back when that ends.
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
	a.EndAhead() // and whoever has more to come for it finds it closed
}
