package exchange

// nameMask is a set of header names with one bit a name: two masks that do not
// meet have no name in common, which spares the comparison of names in the
// ordinary response.
type nameMask uint64

// spread is chosen so that no two of the names that answers have most share a bit.
const spread = 0xf1a4efd5

// maskOf returns the mask of one name, the same for every casing of it.
func maskOf(name string) nameMask {
	if name == "" {
		return 0
	}
	n := len(name)
	h := uint32(n) | uint32(name[0]|0x20)<<8 | uint32(name[n/2]|0x20)<<16 | uint32(name[n-1]|0x20)<<24
	return 1 << (h * spread >> 26)
}
