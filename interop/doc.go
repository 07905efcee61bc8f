// Package interop has only tests. They run third-party programs that are written for net/http on both of Dunlin's
// engines. The programs are not changed.
package interop
