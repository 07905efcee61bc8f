// Package interop has no code of its own. Its tests run what others have written
// for net/http on both of Dunlin's engines, unchanged.
package interop
