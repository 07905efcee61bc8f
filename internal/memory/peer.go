package memory

import "time"

// A peer is the progress of a holder's client: the bytes of its request or of the answer. The lock is the account's.
type peer struct {
	since   int64 // time at which the holder began to hold something
	stopped int64 // time at which the clock stopped, because the server does not wait for the peer; 0: it runs
	answers int64 // time since which the peer is to read an answer; 0 if there is none
	unsent  int64 // bytes of the answer at that time
	left    int64 // bytes that the peer still has to send or to read; -1: unknown
	began   int64 // start of the measurement of its rate
	moved   int64 // bytes moved since
	last    int64 // time of its last progress
}

const (
	// window is the time, in ns, over which a rate is measured. The prior is the assumed rate at the beginning.
	window     = int64(5 * time.Second)
	priorBytes = 4 << 10
	priorTime  = int64(50 * time.Millisecond)

	// A peer is slow if the rest is not expected within goodTime, in ns, or it was silent for longer than goodPause, in ns. In
	// the first goodPause it has a good rate.
	goodTime  = int64(4 * time.Second)
	goodPause = int64(time.Second)

	// maxTime limits the time until memory is free, in ns, that counts in the cost of a holder. So many holders of next to nothing
	// are not evicted for having held it for hours.
	maxTime = int64(10 * time.Second)
)

// begin starts the clock of a holder that held nothing.
func (p *peer) begin(now int64) {
	p.since = now
	if p.answers == 0 {
		p.left = -1
	}
	p.measure(now)
}

// measure starts the measurement of the rate.
func (p *peer) measure(now int64) {
	p.began, p.last, p.moved = now, now, 0
	if p.stopped != 0 {
		p.stopped = now
	}
}

// moves records n more bytes. Of bytes moved longer than a window ago a part is forgotten.
func (p *peer) moves(n, now int64) {
	if age := now - p.began; age > window {
		p.moved = int64(float64(p.moved) * float64(window) / float64(age))
		p.began = now - window
	}
	p.moved += n
	p.last = now
}

// stop stops the clock; start continues it as if no time had passed.
func (p *peer) stop(now int64) {
	if p.stopped == 0 {
		p.stopped = now
	}
}

func (p *peer) start(now int64) {
	if p.stopped != 0 {
		by := now - p.stopped
		p.began, p.last, p.stopped = p.began+by, p.last+by, 0
	}
}

// at returns the time on the peer's clock.
func (p *peer) at(now int64) int64 {
	if p.stopped != 0 {
		return p.stopped
	}
	return now
}

// expected returns the time in ns until the held bytes are expected to be free. It is at least the time for which the peer has
// been silent.
func (p *peer) expected(now, held int64) float64 {
	now = p.at(now)
	left := p.left
	if left < 0 {
		left = held // assume as much again
	}
	rate := float64(p.moved+priorBytes) / float64(now-p.began+priorTime)
	return max(float64(left)/rate, float64(now-p.last))
}

// isSlow reports whether the peer is slow.
func (p *peer) isSlow(now, held int64) bool {
	if p.at(now)-p.began < goodPause {
		return false
	}
	return p.moved == 0 || p.at(now)-p.last > goodPause || p.expected(now, held) > float64(goodTime)
}
