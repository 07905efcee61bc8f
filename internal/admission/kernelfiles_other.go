//go:build !linux

package admission

import (
	"io/fs"
	"os"
)

// KernelFiles is the file system from its root.
func KernelFiles() fs.FS { return os.DirFS("/") }
