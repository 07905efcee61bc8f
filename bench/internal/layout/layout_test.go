package layout_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	bench := filepath.Join(root, "bench")
	deep := filepath.Join(bench, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	mod := "module github.com/dunlinhttp/dunlin/bench\n\ngo 1.26\n"
	if err := os.WriteFile(filepath.Join(bench, "go.mod"), []byte(mod), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{root, bench, deep} {
		got, err := layout.Find(from)
		if err != nil {
			t.Fatalf("Find(%s): %v", from, err)
		}
		if got.Bench != bench || got.Root != root {
			t.Errorf("Find(%s): got %s in %s, want %s in %s", from, got.Bench, got.Root, bench, root)
		}
	}
	if _, err := layout.Find(t.TempDir()); err == nil {
		t.Error("Find outside the repository: got no error")
	}
}
