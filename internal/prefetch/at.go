//go:build amd64 || arm64

package prefetch

// At asks for so many lines from an address on, at least one. What lies there is neither read nor changed: it may be
// any address, also one at which there is nothing any more.
//
//go:noescape
func At(address uintptr, lines int)
