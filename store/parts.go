package store

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A part limits the total size of the values with a key prefix, so that other values have room.
type part struct {
	prefix string // the prefix of the keys
	max    int64  // in bytes
	held   atomic.Int64
}

// add adds n bytes to the size. A nil part has no limit and no size.
func (p *part) add(n int64) {
	if p != nil {
		p.held.Add(n)
	}
}

// fits adds n bytes to the size if they fit, and reports whether they do.
func (p *part) fits(n int64) bool {
	if p == nil || p.held.Add(n) <= p.max || n <= 0 {
		return true
	}
	p.held.Add(-n)
	return false
}

// parts is the list of the parts of a store. It is short, so of searches it linearly.
type parts struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*part]
}

// of returns the part of a key, or nil.
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

// Bound limits the total size of the values whose keys begin with prefix to limit bytes, or to a quarter of MaxBytes if
// limit is 0. When the limit is reached, Set fails with ErrFull. Call Bound before the first of these values is set. It
// returns the limit. A second call for a prefix has no effect, and returns the limit of the first call.
func (m *Memory) Bound(prefix string, limit int64) int64 {
	if limit == 0 {
		limit = m.max / 4
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
	all = append(all[:len(all):len(all)], &part{prefix: prefix, max: limit})
	ps.all.Store(&all)
	return limit
}

// warn logs, at most once a minute, that the store is nearly full.
func (m *Memory) warn() {
	held := m.held.Load()
	if held < m.max/5*4 {
		return
	}
	now, last := nowMicros(), m.warned.Load()
	if now-last < int64(time.Minute/time.Microsecond) || !m.warned.CompareAndSwap(last, now) {
		return
	}
	m.logger.Warn("the memory store is nearly full: at its limit, new entries fail", "bytes", held, "maxBytes", m.max, "failed", m.full.Load())
}
