package exchange

import "sync/atomic"

// pairs are what a block and others come to, by the other: the first one, and a table in
// which each other has one place. Who comes first to a place has it for good, so what is kept is bounded,
// and blocks that are made at run time cost no more than the look.
type pairs struct {
	first atomic.Pointer[pair]
	table atomic.Pointer[[pairsKept]atomic.Pointer[pair]] // made for the second
}

type pair struct{ other, result *Block }

const pairsKept = 32

// find returns what was made with another block, nil if it is not kept.
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

// hasRoom reports whether what is made with another block would be kept.
func (p *pairs) hasRoom(other *Block) bool {
	t := p.table.Load()
	return t == nil || t[other.number%pairsKept].Load() == nil
}

// keep keeps what was made with another block if there is room. One that another goroutine keeps at this moment
// is made again.
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

// metKept is how many results of Answer.Identify a block keeps.
const metKept = 4

// meet returns the result of Answer.Identify with b on a base that has none of b's names, and with block over
// them unless that is b itself; nil if none is kept. base is not nil. So answers in a row with the same
// headers cost one look-up. As in pairs, the first result in a place stays.
func (b *Block) meet(base, block *Block) *Block {
	if m := b.met[base.number%metKept].Load(); m != nil && m.above == base && m.below == block {
		return m
	}
	return nil
}

// keepMet keeps a result if there is room.
func (b *Block) keepMet(base, block, result *Block) {
	if place := &b.met[base.number%metKept]; place.Load() == nil && result.above == base && result.below == block {
		place.CompareAndSwap(nil, result)
	}
}
