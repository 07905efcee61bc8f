package archtest_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// surfaceFile lists the exported identifiers of every package that users import, a line each: the package, then the
// identifier. Methods and members follow their type, as in Config.Addr.
const surfaceFile = "testdata/surface.txt"

// fieldMark ends the lines of fields of structs and methods of interfaces.
const fieldMark = " (member)"

// maxRootNames bounds the exported identifiers of the root: types, functions, methods, constants and variables, without
// members. It may only become smaller.
const maxRootNames = 222

// TestSurfaceGrowsDeliberately compares the exported identifiers with surfaceFile. An exported identifier is a promise, so
// a change that adds or removes one changes that file, too.
func TestSurfaceGrowsDeliberately(t *testing.T) {
	found := surface(t)
	names := 0
	for _, line := range found {
		if strings.HasPrefix(line, "dunlin ") && !strings.HasSuffix(line, fieldMark) {
			names++
		}
	}
	if names > maxRootNames {
		t.Errorf("the root exports %d identifiers, more than %d: %s", names, maxRootNames, shopWindow)
	}
	text := strings.Join(found, "\n") + "\n"
	if os.Getenv("DUNLIN_UPDATE_SURFACE") != "" {
		if err := os.WriteFile(surfaceFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(surfaceFile)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	added := slices.DeleteFunc(slices.Clone(found), func(line string) bool { return slices.Contains(listed, line) })
	removed := slices.DeleteFunc(listed, func(line string) bool { return slices.Contains(found, line) })
	if len(added)+len(removed) > 0 {
		t.Errorf("the public API has changed. If that is intended, run DUNLIN_UPDATE_SURFACE=1 go test ./internal/archtest -run %s and commit %s.\nadded: %q\nremoved: %q",
			t.Name(), surfaceFile, added, removed)
	}
}

// surface returns the exported identifiers of all modules, sorted, without those of commands, examples and tests.
func surface(t *testing.T) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			if rel != "." && (slices.Contains([]string{"internal", "testdata", "examples", "cmd", "bench", "interop", "tools", "docs"}, name) || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		s, err := parse(file, rel)
		if err != nil || s.syntax.Name.Name == "main" {
			return err
		}
		pkg := path.Dir(rel)
		if pkg == "." {
			pkg = "dunlin"
		}
		for _, name := range exported(s.syntax) {
			lines = append(lines, fmt.Sprintf("%s %s", pkg, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// exported returns the exported identifiers that a file declares.
func exported(file *ast.File) (names []string) {
	add := func(id *ast.Ident, of string) {
		if id.IsExported() {
			names = append(names, of+id.Name)
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			of := ""
			if decl.Recv != nil {
				of = receiver(decl.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				of += "."
			}
			add(decl.Name, of)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(id, "")
					}
				case *ast.TypeSpec:
					add(spec.Name, "")
					if !spec.Name.IsExported() {
						continue
					}
					for _, field := range members(spec.Type) {
						ids := field.Names
						if len(ids) == 0 { // embedded
							ids = []*ast.Ident{ast.NewIdent(receiver(field.Type))}
						}
						for _, id := range ids {
							if id.IsExported() {
								names = append(names, spec.Name.Name+"."+id.Name+fieldMark)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// members returns the fields of a struct, or the methods of an interface.
func members(t ast.Expr) []*ast.Field {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// receiver returns the name of a type without its package, pointer and type parameters.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return token.ILLEGAL.String()
}
