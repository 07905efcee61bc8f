package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// unpublished lists the folders whose modules are used only in this repository.
var unpublished = []string{"bench", "examples", "interop", "tools"}

// A mod is a published module of the repository.
type mod struct {
	dir  string // relative to the root of the repository, with slashes; "." for the core module
	path string
	file *modfile.File
}

// tag returns the name of the git tag of the module for a version.
func (m mod) tag(version string) string {
	return path.Join(m.dir, version)
}

// modules returns the published modules below root. Each module comes after the modules that it
// requires.
func modules(root string) ([]mod, error) {
	var all []mod
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || dir == "." && slices.Contains(unpublished, d.Name())) {
			return filepath.SkipDir
		}
		if d.Name() != "go.mod" {
			return nil
		}
		m, err := readModule(root, filepath.ToSlash(dir))
		all = append(all, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ordered(all)
}

func readModule(root, dir string) (mod, error) {
	name := filepath.Join(root, dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return mod{}, err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return mod{}, err
	}
	return mod{dir: dir, path: file.Module.Mod.Path, file: file}, nil
}

// ordered sorts modules so that each module comes after the modules that it requires.
func ordered(all []mod) ([]mod, error) {
	var done []mod
	for len(done) < len(all) {
		before := len(done)
		for _, m := range all {
			if !contains(done, m.path) && !slices.ContainsFunc(own(m, all), func(path string) bool { return !contains(done, path) }) {
				done = append(done, m)
			}
		}
		if len(done) == before {
			return nil, fmt.Errorf("modules require each other in a cycle: %d of %d could be ordered", before, len(all))
		}
	}
	return done, nil
}

// own returns the modules of this repository that m requires.
func own(m mod, all []mod) []string {
	var paths []string
	for _, r := range m.file.Require {
		if contains(all, r.Mod.Path) {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths
}

func contains(all []mod, path string) bool {
	return slices.ContainsFunc(all, func(m mod) bool { return m.path == path })
}

// publish changes the go.mod of m to that of a release: it removes replace directives, and requires
// the modules of this repository at the given version.
func (m mod) publish(root, version string, all []mod) error {
	for _, path := range own(m, all) {
		if err := m.file.AddRequire(path, version); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(m.file.Replace) {
		if !contains(all, r.Old.Path) {
			return fmt.Errorf("%s/go.mod replaces %s, which is no module of this repository", m.dir, r.Old.Path)
		}
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, m.dir, "go.mod"), text, 0o666)
}
