//go:build !amd64 && !arm64

package prefetch

// At does nothing on this processor.
func At(address uintptr, lines int) {}
