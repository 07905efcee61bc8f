package gcpace_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/gcpace"
)

// Files of every length are read completely, and an unreadable file has an error with its reason.
func TestKernelFiles(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 1023, 1024, 1025, 4096, 100_000} {
		path := filepath.Join(dir, "file")
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(gcpace.KernelFiles(), strings.TrimPrefix(path, "/"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
	for _, name := range []string{strings.TrimPrefix(filepath.Join(dir, "none"), "/"), strings.TrimPrefix(dir, "/"), "/proc/self/cgroup", "../x"} {
		var about *fs.PathError
		if text, err := fs.ReadFile(gcpace.KernelFiles(), name); !errors.As(err, &about) {
			t.Errorf("%s: read %q, %v", name, text, err)
		}
	}
	if text, err := fs.ReadFile(gcpace.KernelFiles(), "proc/self/statm"); err != nil || len(bytes.Fields(text)) != 7 {
		t.Errorf("statm: got %q, %v", text, err)
	}
}
