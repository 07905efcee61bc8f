package router

// automaton is a deterministic finite automaton over bytes that decides whether a complete value matches an expression. It
// needs one table lookup for each byte, whatever the expression is.
//
// Bytes that no state distinguishes form a class, so that a row of the table is short. A state is represented by the offset of
// its row. Column 0 of a row reports whether a value may end in this state. The column of a class has the next state. Row 0 is
// the dead state, from which nothing matches.
type automaton struct {
	class [256]uint8 // column of a byte, ≥ 1
	next  []uint16   // the table, row by row
	start uint16     // offset of the row of the first state
}

// match reports whether the unescaped value of the canonical text matches.
func (a *automaton) match(canonical string) bool {
	state := uint(a.start)
	for i := 0; i < len(canonical); i++ {
		c := canonical[i]
		if c == '%' && i+2 < len(canonical) {
			if canonical[i+1] == '2' && canonical[i+2] == 'F' {
				c = '/'
			}
			i += 2
		}
		state = uint(a.next[state+uint(a.class[c])])
		if state == 0 {
			return false
		}
	}
	return a.next[state] != 0
}
