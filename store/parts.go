package store

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A part bounds what the values of one use hold, so that they leave room for others.
type part struct {
	prefix string // of the keys
	max    int64
	held   atomic.Int64
}

// add counts n bytes more. A nil part has no bound, and counts nothing.
func (p *part) add(n int64) {
	if p != nil {
		p.held.Add(n)
	}
}

// fits counts n bytes more, or reports that there is no room for them.
func (p *part) fits(n int64) bool {
	if p == nil || p.held.Add(n) <= p.max || n <= 0 {
		return true
	}
	p.held.Add(-n)
	return false
}

// parts are those of a store. They are few.
type parts struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*part]
}

// of returns the part that a key belongs to, nil for none.
func (ps *parts) of(key string) *part {
	all := ps.all.Load()
	if all == nil {
		return nil
	}
	for _, p := range *all {
		if strings.HasPrefix(key, p.prefix) {
			return p
		}
	}
	return nil
}

// Bound bounds what the values hold whose keys begin with prefix, at most bytes, or a quarter of MaxBytes if that is 0, and returns the bound.
// Beyond it Set fails with ErrFull. It is called before the first of these values is set; of several calls for a prefix the first counts.
func (m *Memory) Bound(prefix string, most int64) int64 {
	if most == 0 {
		most = m.max / 4
	}
	ps := &m.parts
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var all []*part
	if old := ps.all.Load(); old != nil {
		all = *old
	}
	for _, p := range all {
		if p.prefix == prefix {
			return p.max
		}
	}
	all = append(all[:len(all):len(all)], &part{prefix: prefix, max: most})
	ps.all.Store(&all)
	return most
}

// warn says, once a minute at most, that little room is left.
func (m *Memory) warn() {
	held := m.held.Load()
	if held < m.max/5*4 {
		return
	}
	now, last := nowMicros(), m.warned.Load()
	if now-last < int64(time.Minute/time.Microsecond) || !m.warned.CompareAndSwap(last, now) {
		return
	}
	m.logger.Warn("the store in memory is nearly full: at its bound, what is new fails", "bytes", held, "maxBytes", m.max, "failed", m.full.Load())
}
