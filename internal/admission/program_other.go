//go:build !linux

package admission

// DropProgram does nothing on this system.
func DropProgram() {}
