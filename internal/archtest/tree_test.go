package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.." // root of the module, relative to this folder
	module = "github.com/dunlinhttp/dunlin"
)

// A source is one Go file.
type source struct {
	path   string // slash-separated path from the root of the module
	folder string // "" for the root
	test   bool
	lines  int
	syntax *ast.File
	fset   *token.FileSet
}

// sources parses every Go file of the core module, including those for other systems.
func sources(t *testing.T) []source {
	t.Helper()
	return parseTree(t, ignored)
}

// allSources is sources with the files of the other modules of the repository.
func allSources(t *testing.T) []source {
	t.Helper()
	return parseTree(t, func(_, name string) bool { return invisible(name) })
}

func parseTree(t *testing.T, skip func(path, name string) bool) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && skip(path, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		s, err := parse(path, filepath.ToSlash(rel))
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found: the tests look in the wrong place")
	}
	return all
}

// ignored reports whether a folder is outside the core module, by the rules of the go command.
func ignored(path, name string) bool {
	if invisible(name) {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// invisible reports whether the go command skips folders of this name.
func invisible(name string) bool {
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func parse(path, rel string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	s := source{path: rel, fset: token.NewFileSet(), test: strings.HasSuffix(rel, "_test.go")}
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		s.folder = rel[:i]
	}
	s.lines = strings.Count(string(text), "\n")
	s.syntax, err = parser.ParseFile(s.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// imports returns the import paths of a file.
func (s source) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", s.path, spec.Path.Value, err)
		}
		paths = append(paths, path)
	}
	return paths
}

// ofCore returns the folder of a package of the core module.
func ofCore(path string) (folder string, ok bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}
