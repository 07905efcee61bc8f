package archtest_test

import (
	"go/ast"
	"slices"
	"testing"
)

// maxFields bounds the fields of a struct. A function may touch every field of the struct that it is a method of, so a reader
// must know all of them.
const maxFields = 20

// heavy lists the structs with more fields, and bounds them. A bound may only become smaller.
var heavy = map[string]int{
	" App":                       34,
	"internal/engine Config":     25, // configuration
	"internal/engine Conn":       22,
	"internal/engine Driver":     25,
	"internal/engine Engine":     34,
	"internal/engine loop":       42,
	"internal/exchange Settings": 21, // configuration
	"internal/http1 Head":        24,
	"internal/http2 Conn":        38,
	"internal/looph2 session":    32,
	"internal/looph2 stream":     22,
	"internal/memory Budget":     23,
	"internal/schema Rules":      21,
	"internal/stdhttp wire":      21,
	"internal/stdwriter Writer":  22,
	"middleware cacheEntry":      21,
	"websocket Conn":             25,
}

func TestStructsAreSmall(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for name, fields := range structs(s.syntax) {
			name = s.folder + " " + name
			if fields <= maxFields {
				continue
			}
			if most := max(heavy[name], maxFields); fields > most {
				t.Errorf("%s: %s has %d fields, more than %d: make the fields that change together a struct of their own, with the methods that change them", s.path, name, fields, most)
			}
		}
	}
}

// structs returns the number of fields of each named struct of a file.
func structs(file *ast.File) map[string]int {
	all := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range members(spec.Type) {
					all[spec.Name.Name] += max(len(f.Names), 1)
				}
			}
		}
		return true
	})
	return all
}

// maxTwins bounds the names of functions that both adapters of the event loops have. It may only become smaller. About half of
// them are methods of the interfaces of internal/exchange.
const maxTwins = 77

func TestAdaptersShareFunctions(t *testing.T) {
	names := map[string][]string{}
	for _, s := range sources(t) {
		if s.test || s.folder != "internal/loophttp" && s.folder != "internal/looph2" {
			continue
		}
		for _, decl := range s.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && !slices.Contains(names[f.Name.Name], s.folder) {
				names[f.Name.Name] = append(names[f.Name.Name], s.folder)
			}
		}
	}
	twins := 0
	for _, folders := range names {
		if len(folders) == 2 {
			twins++
		}
	}
	if twins > maxTwins {
		t.Errorf("internal/loophttp and internal/looph2 have %d functions of the same name, more than %d: what both need belongs in internal/request", twins, maxTwins)
	}
}
