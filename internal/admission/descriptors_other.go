//go:build !unix

package admission

// DescriptorsForConnections returns 0: descriptors are not limited here.
func DescriptorsForConnections() int { return 0 }
