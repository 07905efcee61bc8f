package exchange

import "sync/atomic"

// pairs caches the combinations of a block with other blocks: the first combination, and a table in which each other block has
// one slot, which several blocks may share. The first entry of a slot stays. So the size of the cache is bounded, and for blocks
// that are made at run time only the lookup is lost.
type pairs struct {
	first atomic.Pointer[pair]
	table atomic.Pointer[[pairsKept]atomic.Pointer[pair]] // allocated for the second combination
}

type pair struct{ other, result *Block }

const pairsKept = 32

// find returns the cached combination with another block, or nil.
func (p *pairs) find(other *Block) *Block {
	m := p.first.Load()
	if m == nil || m.other == other {
		return m.made()
	}
	if t := p.table.Load(); t != nil {
		if m = t[other.number%pairsKept].Load(); m != nil && m.other == other {
			return m.result
		}
	}
	return nil
}

func (m *pair) made() *Block {
	if m == nil {
		return nil
	}
	return m.result
}

// hasRoom reports whether keep would store a combination with another block.
func (p *pairs) hasRoom(other *Block) bool {
	t := p.table.Load()
	return t == nil || t[other.number%pairsKept].Load() == nil
}

// keep stores the combination with another block if there is room. If two goroutines make the same combination at the same time,
// only one of the two is stored.
func (p *pairs) keep(other, result *Block) {
	m := &pair{other, result}
	if p.first.CompareAndSwap(nil, m) {
		return
	}
	t := p.table.Load()
	if t == nil {
		p.table.CompareAndSwap(nil, new([pairsKept]atomic.Pointer[pair]))
		t = p.table.Load()
	}
	t[other.number%pairsKept].CompareAndSwap(nil, m)
}

// metKept is the number of results of Answer.Identify that a block caches.
const metKept = 4

// meet returns a cached result of Answer.Identify: base, the fields of block under it, and the fields of b over both, unless b is
// block itself. It returns nil if there is none. base must not be nil. So consecutive answers with the same headers need only one
// lookup. As in pairs, the first entry of a slot stays.
func (b *Block) meet(base, block *Block) *Block {
	if m := b.met[base.number%metKept].Load(); m != nil && m.above == base && m.below == block {
		return m
	}
	return nil
}

// keepMet caches a result if there is room.
func (b *Block) keepMet(base, block, result *Block) {
	if slot := &b.met[base.number%metKept]; slot.Load() == nil && result.above == base && result.below == block {
		slot.CompareAndSwap(nil, result)
	}
}
