// Package invariants holds the checks that only test builds run: with the race detector, memory that was lent to an action is
// overwritten when the loan ends, so that tests detect a retained view.
package invariants

// Poison is the byte with which memory is overwritten at the end of a loan. 0xCC is not ASCII, and not valid UTF-8 by itself, so
// it cannot be mistaken for content.
const Poison = 0xCC

// EndLoan overwrites b with Poison in builds where Enabled is true. In other builds it does nothing. The caller must own b: no
// other goroutine may read or write it.
func EndLoan(b []byte) {
	if Enabled {
		for i := range b {
			b[i] = Poison
		}
	}
}
