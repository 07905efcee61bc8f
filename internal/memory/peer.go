package memory

import "time"

// A peer records the progress of a holder's client: how many bytes of its request or of the answer it has moved. It is guarded by
// the lock of the account.
type peer struct {
	since   int64 // time at which the holder began to hold something
	stopped int64 // time at which the peer's clock stopped, because the server does not wait for the peer; 0: the clock runs
	answers int64 // time since which an answer waits for the peer; 0 if there is none
	unsent  int64 // unsent bytes of the answer at that time
	left    int64 // bytes that the peer still has to send or to read; -1: unknown
	began   int64 // start of the measurement of the peer's rate
	moved   int64 // bytes sent or read since began
	last    int64 // time of the last progress
}

const (
	// window is the time, in ns, over which a rate is measured. At the beginning the rate is assumed to be priorBytes in
	// priorTime.
	window     = int64(5 * time.Second)
	priorBytes = 4 << 10
	priorTime  = int64(50 * time.Millisecond)

	// A peer is slow if its remaining bytes are not expected within goodTime, in ns, or if it was silent for longer than
	// goodPause, in ns. During the first goodPause each peer has a good rate.
	goodTime  = int64(4 * time.Second)
	goodPause = int64(time.Second)

	// maxTime limits the time until memory is free, in ns, that counts in the cost of a holder. So a holder of very few bytes
	// does not become costly by holding them for hours.
	maxTime = int64(10 * time.Second)
)

// begin starts the clock when the account begins to hold memory.
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

// moves records that the peer has sent or read n more bytes. When the measurement is older than a window, the earlier bytes count
// less.
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
		left = held // assume that as many bytes are still to come
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
