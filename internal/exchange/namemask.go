package exchange

// nameMask is a set of header names with one bit for each name; several names may have the same bit. Two sets without a common
// bit have no common name, which saves the comparison of names in ordinary responses.
type nameMask uint64

// spread was chosen so that no two of the most common response header names share a bit.
const spread = 0xf1a4efd5

// maskOf returns the mask of one name, independent of its case.
func maskOf(name string) nameMask {
	if name == "" {
		return 0
	}
	n := len(name)
	h := uint32(n) | uint32(name[0]|0x20)<<8 | uint32(name[n/2]|0x20)<<16 | uint32(name[n-1]|0x20)<<24
	return 1 << (h * spread >> 26)
}
