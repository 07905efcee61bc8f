package archtest_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestNoCodePointers refuses the comparison of functions by their addresses: two functions of one body may share an
// address, and inlining changes it. A caller that must know what a function is gets it as a value with a type.
func TestNoCodePointers(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && addressOfValue(call) {
				t.Errorf("%s takes the address of a value by package reflect: pass what is to be recognized as a value with a type", s.fset.Position(call.Pos()))
			}
			return true
		})
	}
}

// addressOfValue reports whether call is reflect.ValueOf(x).Pointer() or UnsafePointer().
func addressOfValue(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Pointer" && method.Sel.Name != "UnsafePointer" {
		return false
	}
	of, ok := method.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	value, ok := of.Fun.(*ast.SelectorExpr)
	return ok && value.Sel.Name == "ValueOf"
}

// TestRootInlinesFreely refuses go:noinline in the root: it was there for functions recognized by their addresses.
func TestRootInlinesFreely(t *testing.T) {
	for _, s := range sources(t) {
		if s.folder != "" || s.test {
			continue
		}
		for _, group := range s.syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:noinline") {
					t.Errorf("%s has go:noinline: nothing may depend on it, and no benchmark of the root needs it", s.fset.Position(c.Pos()))
				}
			}
		}
	}
}

// seams are the packages through which others meet.
var seams = []string{"internal/engine", "internal/exchange"}

// untyped lists what has type any in these packages, with the reason.
var untyped = map[string]string{
	"internal/engine Handler.Abandoned": "the value of a panic",
}

// TestSeamsAreTyped refuses type any in the fields, variables and interfaces of seams: a value that one package stores and
// another one asserts the type of is a path around the interface between them.
func TestSeamsAreTyped(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(seams, s.folder) {
			continue
		}
		for _, name := range anys(s.syntax) {
			name = s.folder + " " + name
			if found[name] = true; untyped[name] == "" {
				t.Errorf("%s: %s has type any: give it the type, or an interface, that its users need", s.path, name)
			}
		}
	}
	for name := range untyped {
		if !found[name] {
			t.Errorf("%s is listed as untyped, but is not: remove it from the list", name)
		}
	}
}

// anys returns the fields, variables and methods of interfaces that have type any, without type parameters.
func anys(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE && group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if isAny(spec.Type) {
					names = append(names, spec.Names[0].Name)
				}
			case *ast.TypeSpec:
				for _, m := range members(spec.Type) {
					if len(m.Names) > 0 && isAny(m.Type) {
						names = append(names, spec.Name.Name+"."+m.Names[0].Name)
					}
				}
			}
		}
	}
	return names
}

// isAny reports whether a type is any, or a function that takes or returns it.
func isAny(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name == "any"
	case *ast.InterfaceType:
		return len(t.Methods.List) == 0
	case *ast.FuncType:
		for _, list := range []*ast.FieldList{t.Params, t.Results} {
			if list != nil && slices.ContainsFunc(list.List, func(f *ast.Field) bool { return isAny(f.Type) }) {
				return true
			}
		}
	}
	return false
}
