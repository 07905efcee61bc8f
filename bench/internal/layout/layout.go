// Package layout finds the folders of the module bench from any working directory.
package layout

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

const module = "module github.com/dunlinhttp/dunlin/bench"

// Folders has absolute paths.
type Folders struct {
	Bench   string // the module bench
	Root    string // the core module, which contains bench
	Build   string // programs, and files that servers write; not in git
	Results string // one JSON file per run
	Loads   string // scripts for wrk
	Docs    string // docs of the core module, into which the report is written
}

// Find looks for the module bench in dir, in dir/bench and in the folders that contain dir.
func Find(dir string) (Folders, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return Folders{}, fmt.Errorf("find the bench module: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		for _, candidate := range []string{at, filepath.Join(at, "bench")} {
			mod, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
			if err == nil && bytes.HasPrefix(mod, []byte(module+"\n")) {
				return under(candidate), nil
			}
		}
		if at == filepath.Dir(at) {
			return Folders{}, fmt.Errorf("find the bench module: none in %s nor above it", start)
		}
	}
}

func under(bench string) Folders {
	root := filepath.Dir(bench)
	return Folders{
		Bench:   bench,
		Root:    root,
		Build:   filepath.Join(bench, ".bench-build"),
		Results: filepath.Join(bench, "results"),
		Loads:   filepath.Join(bench, "loads"),
		Docs:    filepath.Join(root, "docs"),
	}
}
