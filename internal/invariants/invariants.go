// Package invariants holds the checks that only test builds run: with the race detector, memory that was lent to an action is
// overwritten when the loan ends, so that tests detect a retained view.
package invariants

// Poison is the byte that ended loans are overwritten with. 0xCC is neither
// ASCII nor valid UTF-8 on its own, so it cannot be mistaken for content.
const Poison = 0xCC

// EndLoan overwrites b with Poison in builds where Enabled is true, and does nothing in others. The caller must own b: no
// other goroutine may read or write it.
func EndLoan(b []byte) {
	if Enabled {
		for i := range b {
			b[i] = Poison
		}
	}
}
