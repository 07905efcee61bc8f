//go:build !linux

package lowmem

func dropProgram() {}
