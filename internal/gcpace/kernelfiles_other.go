//go:build !linux

package gcpace

import (
	"io/fs"
	"os"
)

// KernelFiles is the file system from its root.
func KernelFiles() fs.ReadFileFS { return os.DirFS("/").(fs.ReadFileFS) }
