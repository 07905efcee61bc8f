package exchange

import "sync/atomic"

// pairs caches the combinations of a block with other blocks: the first one, and a table in which each other block has one
// slot. The first entry of a slot stays, so the size is bounded, and blocks made at run time cost only a lookup.
type pairs struct {
	first atomic.Pointer[pair]
	table atomic.Pointer[[pairsKept]atomic.Pointer[pair]] // allocated for the second one
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

// keep stores the combination with another block if there is room. If two goroutines make it at the same time, one of them may
// be dropped.
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

// meet returns the cached result of Answer.Identify with b on a base that has none of b's names, and with block over them
// unless it is b itself, or nil. base is not nil. So consecutive answers with the same headers cost one lookup. As in pairs,
// the first entry of a slot stays.
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
