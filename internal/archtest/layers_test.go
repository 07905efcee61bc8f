package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxUpward is the maximum number of upward dependencies between files of the root, in the order of files with the fewest.
// Two files that depend on each other must be read together.
const maxUpward = 34

func TestRootFilesFormLayers(t *testing.T) {
	names, uses := rootDependencies(t)
	upward, order := layers(len(names), uses)
	var up []string
	for low, a := range order {
		for _, b := range order[:low] {
			if uses[a][b] {
				up = append(up, names[a]+" → "+names[b])
			}
		}
	}
	if upward > maxUpward {
		t.Errorf("got %d upward dependencies between files of the root, want at most %d: %s. In the best order found, these point up:\n%s",
			upward, maxUpward, "move the declaration to the file that uses it, or to a file below both", strings.Join(up, "\n"))
	}
}

// rootDependencies returns the root's files on Linux, and which file uses declarations of which other file.
func rootDependencies(t *testing.T) (names []string, uses [][]bool) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, s := range sources(t) {
		if s.folder != "" || s.test || strings.HasSuffix(s.path, "_other.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(root, s.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names, files = append(names, s.path), append(files, file)
	}
	// Identifiers of other packages are omitted, so only the root needs type checking.
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check(module, fset, files, &info)

	at := func(pos token.Pos) int { return slices.Index(names, filepath.Base(fset.Position(pos).Filename)) }
	uses = make([][]bool, len(names))
	for i := range uses {
		uses[i] = make([]bool, len(names))
	}
	for id, object := range info.Uses {
		if object.Pkg() == pkg && object.Pos().IsValid() {
			uses[at(id.Pos())][at(object.Pos())] = true
		}
	}
	return names, uses
}

// A nothing importer provides packages without contents.
type nothing struct{}

func (nothing) Import(of string) (*types.Package, error) {
	pkg := types.NewPackage(of, path.Base(of))
	pkg.MarkComplete()
	return pkg, nil
}

// layers searches for the order of n files in which the fewest uses point up. It starts with several random orders, from a
// fixed seed, and moves single files while that improves the order.
func layers(n int, uses [][]bool) (fewest int, best []int) {
	weight := func(a, b int) int { // cost of placing a above b
		if uses[b][a] {
			return 1
		}
		return 0
	}
	for try := range uint64(40) {
		order := rand.New(rand.NewPCG(1, try)).Perm(n)
		for moved := true; moved; {
			moved = false
			for i, x := range order {
				gain, to := 0, i
				for _, step := range []int{-1, 1} {
					sum := 0
					for j := i + step; j >= 0 && j < n; j += step {
						y := order[j]
						if step < 0 {
							sum += weight(x, y) - weight(y, x)
						} else {
							sum += weight(y, x) - weight(x, y)
						}
						if sum < gain {
							gain, to = sum, j
						}
					}
				}
				if to != i {
					order = slices.Insert(slices.Delete(order, i, i+1), to, x)
					moved = true
					break
				}
			}
		}
		upward := 0
		for low, a := range order {
			for _, b := range order[:low] {
				upward += weight(b, a)
			}
		}
		if best == nil || upward < fewest {
			fewest, best = upward, order
		}
	}
	return fewest, best
}
