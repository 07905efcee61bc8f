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
