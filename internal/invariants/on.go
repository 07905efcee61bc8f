//go:build race

package invariants

import "sync/atomic"

// Enabled reports whether this build checks its invariants.
const Enabled = true

// A Flag is set when an object must not be used any more.
type Flag struct{ set atomic.Bool }

// Set sets the flag, or clears it if on is false.
func (f *Flag) Set(on bool) { f.set.Store(on) }

// IsSet reports whether the flag is set. In builds where Enabled is false it always returns false.
func (f *Flag) IsSet() bool { return f.set.Load() }
