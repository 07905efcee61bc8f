//go:build !race

package invariants

// Enabled reports whether this build checks its invariants.
const Enabled = false

// A Flag is set when an object must not be used any more. In this build it needs no memory and is never set.
type Flag struct{}

// Set does nothing.
func (*Flag) Set(bool) {}

// IsSet is false.
func (*Flag) IsSet() bool { return false }
