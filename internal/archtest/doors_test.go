package archtest_test

import (
	"go/ast"
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
