package gcpace

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// KernelFiles is the file system of the kernel's files, such as /proc. It avoids the poller and most of the system
// calls of package os, since programs read these files when they start.
func KernelFiles() fs.ReadFileFS { return kernelFiles{} }

type kernelFiles struct{}

// Open opens a file for callers other than fs.ReadFile.
func (kernelFiles) Open(name string) (fs.File, error) { return os.DirFS("/").Open(name) }

// ReadFile returns the contents of a file. name has no leading slash.
func (kernelFiles) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err := retried(func() (int, error) { return unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 1<<10)
	for {
		n, err := retried(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return text, nil
		}
		text = text[:len(text)+n]
		if len(text) == cap(text) {
			text = append(make([]byte, 0, 4*cap(text)), text...)
		}
	}
}

// retried repeats a call interrupted by a signal.
func retried(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}
