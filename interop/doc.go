// Package interop has no code of its own. Its tests run third-party programs for net/http, unchanged, on both of Dunlin's
// engines.
package interop
