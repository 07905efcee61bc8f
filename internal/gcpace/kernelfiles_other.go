//go:build !linux

package gcpace

import (
	"io/fs"
	"os"
)

// KernelFiles is the root file system.
func KernelFiles() fs.ReadFileFS { return os.DirFS("/").(fs.ReadFileFS) }
