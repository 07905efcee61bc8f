package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestMiddlewareHasOnePattern holds the constructors of package middleware to the pattern that its documentation states: X has
// at most one parameter, and one with several settings takes an XConfig.
func TestMiddlewareHasOnePattern(t *testing.T) {
	found := 0
	for _, s := range sources(t) {
		if s.test || s.folder != "middleware" {
			continue
		}
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			for _, p := range f.Type.Params.List {
				name, ok := p.Type.(*ast.Ident)
				if !ok || !name.IsExported() {
					continue
				}
				found++
				value := strings.TrimPrefix(f.Name.Name, "New")
				if name.Name != value+"Config" && name.Name != strings.TrimSuffix(value, "s")+"Config" {
					t.Errorf("%s has a parameter of type %s, want %sConfig", f.Name.Name, name.Name, value)
				}
			}
			if f.Type.Results == nil || f.Type.Params.NumFields() < 2 {
				continue
			}
			if result, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr); ok && (result.Sel.Name == "Middleware" || result.Sel.Name == "Feature") {
				t.Errorf("%s has %d parameters: one %sConfig has room for them", f.Name.Name, f.Type.Params.NumFields(), f.Name.Name)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d constructors with a configuration were found, want ten or more", found)
	}
}
