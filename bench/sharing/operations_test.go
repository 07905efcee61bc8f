package sharing

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/dunlinhttp/dunlin"

// An operation is a write to memory that other goroutines may see. name is "package.function: expression".
type operation struct {
	name  string
	count int
}

// A block is a range of source lines and columns, and how often it ran.
type block struct {
	from, to position
	count    int
}

type position struct{ line, column int }

func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// operations returns the operations of the statements that ran, from the counters in dir.
func operations(t *testing.T, dir string) []operation {
	t.Helper()
	profile := filepath.Join(dir, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile).CombinedOutput(); err != nil {
		t.Fatalf("go tool covdata: got %v\n%s", err, out)
	}
	blocks, err := blocksOf(profile)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, site := range sites(t) {
		for _, b := range blocks[site.file] {
			if b.count > 0 && !site.at.before(b.from) && site.at.before(b.to) {
				counts[site.name] += b.count
				break
			}
		}
	}
	return sortedNames(counts)
}

// blocksOf reads a profile: lines of file:line.column,line.column statements count.
func blocksOf(profile string) (map[string][]block, error) {
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	blocks := make(map[string][]block)
	in := bufio.NewScanner(f)
	for in.Scan() {
		file, rest, ok := strings.Cut(in.Text(), ":")
		if !ok || file == "mode" {
			continue
		}
		var b block
		var statements int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &b.count); err != nil {
			return nil, fmt.Errorf("%q: %w", in.Text(), err)
		}
		blocks[file] = append(blocks[file], b)
	}
	return blocks, in.Err()
}

// A site is a call in the source that may write to shared memory.
type site struct {
	file string // as in a profile
	at   position
	name string
}

// sites returns all sites of the packages of the module that the server uses.
var sites = func() func(t *testing.T) []site {
	find := sync.OnceValues(findSites)
	return func(t *testing.T) []site {
		t.Helper()
		found, err := find()
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
}()

func findSites() ([]site, error) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export", "./served")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	exports := make(map[string]string)
	var ours []listed
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if (p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/")) && !strings.HasPrefix(p.ImportPath, module+"/bench") {
			ours = append(ours, p)
		}
	}
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) })}
	var found []site
	for _, p := range ours {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection), Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
		if _, err := config.Check(p.ImportPath, files, parsed, info); err != nil {
			return nil, err
		}
		for _, f := range parsed {
			for _, d := range f.Decls {
				found = append(found, sitesIn(files, info, p.ImportPath, d)...)
			}
		}
	}
	return found, nil
}

// sitesIn returns the sites in a declaration.
func sitesIn(files *token.FileSet, info *types.Info, importPath string, d ast.Decl) (found []site) {
	function, ok := d.(*ast.FuncDecl)
	if !ok {
		return nil // initialization runs once
	}
	name := function.Name.Name
	if r := function.Recv; r != nil {
		name = strings.TrimPrefix(types.ExprString(r.List[0].Type), "*") + "." + name
	}
	ast.Inspect(function, func(n ast.Node) bool {
		text := ""
		switch n := n.(type) {
		case *ast.SendStmt:
			text = types.ExprString(n.Chan) + " <-"
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && writes(info, f) {
				text = types.ExprString(f)
			}
		}
		if text != "" {
			at := files.Position(n.Pos())
			found = append(found, site{
				file: importPath + "/" + path.Base(filepath.ToSlash(at.Filename)), at: position{at.Line, at.Column},
				name: path.Base(importPath) + "." + name + ": " + text,
			})
		}
		return true
	})
	return found
}

// writes reports whether f is a function of sync/atomic that writes, or an operation on a lock.
func writes(info *types.Info, f *ast.SelectorExpr) bool {
	object := info.Uses[f.Sel]
	if object == nil || object.Pkg() == nil {
		return false
	}
	switch object.Pkg().Path() {
	case "sync/atomic":
		return !strings.HasPrefix(f.Sel.Name, "Load")
	case "sync":
		return strings.HasSuffix(f.Sel.Name, "Lock") || f.Sel.Name == "Add" || f.Sel.Name == "Done" || f.Sel.Name == "Signal" || f.Sel.Name == "Broadcast"
	}
	return false
}
