package openapi

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// typeName returns a readable name for a type, such as PageOfUser for Page[shop.User].
func typeName(t reflect.Type) string { return cleanName(t.Name()) }

func cleanName(name string) string {
	base, args, generic := strings.Cut(name, "[")
	name = exportedName(bare(base))
	if !generic {
		return name
	}
	var words []string
	for _, arg := range splitArgs(strings.TrimSuffix(args, "]")) {
		words = append(words, argName(arg))
	}
	return name + "Of" + strings.Join(words, "And")
}

// argName returns the name of a type argument. The argument may be a composite type.
func argName(arg string) string {
	arg = strings.TrimSpace(arg)
	switch {
	case strings.HasPrefix(arg, "*"):
		return argName(arg[1:])
	case strings.HasPrefix(arg, "[]"):
		return argName(arg[2:]) + "List"
	case strings.HasPrefix(arg, "map["):
		if i := strings.Index(arg, "]"); i > 0 {
			return argName(arg[i+1:]) + "Map"
		}
	case strings.HasPrefix(arg, "struct {"), strings.HasPrefix(arg, "interface {"):
		return "Any"
	}
	return cleanName(arg)
}

// splitArgs splits type arguments at the commas that are not in brackets.
func splitArgs(args string) []string {
	var list []string
	depth, from := 0, 0
	for i, c := range args {
		switch c {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, args[from:i])
				from = i + 1
			}
		}
	}
	return append(list, args[from:])
}

// bare returns the name of a type without its package, and without the suffix that the compiler
// adds to a type that is declared in a function.
func bare(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if _, after, found := strings.Cut(name, "."); found {
		name = after
	}
	name, _, _ = strings.Cut(name, "·")
	return name
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// exportedName returns the name with a capital first letter. Characters that names of components
// cannot have are replaced.
func exportedName(name string) string {
	name = notInNames.ReplaceAllString(name, "_")
	r := []rune(name)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

// ownNames lists the components that this package adds to documents.
var ownNames = []string{"Problem", "InvalidProblem", "Violation"}

// nameTypes gives each type a unique name. This is the name of the type. If several types, or a
// component of this package, have that name, it is preceded by the name of the package.
func nameTypes(types []reflect.Type) (map[reflect.Type]string, error) {
	byName := map[string][]reflect.Type{}
	for _, t := range types {
		byName[typeName(t)] = append(byName[typeName(t)], t)
	}
	names := map[reflect.Type]string{}
	owner := map[string]reflect.Type{}
	for _, t := range types {
		name := typeName(t)
		if len(byName[name]) > 1 || slices.Contains(ownNames, name) {
			name = exportedName(path.Base(t.PkgPath())) + name
		}
		if other := owner[name]; other != nil {
			return nil, fmt.Errorf("the types %s.%s and %s.%s would both be called %s in the document: rename one",
				other.PkgPath(), other.Name(), t.PkgPath(), t.Name(), name)
		}
		owner[name], names[t] = t, name
	}
	return names, nil
}

// sortTypes sorts types by name.
func sortTypes(types []reflect.Type) {
	slices.SortFunc(types, func(a, b reflect.Type) int {
		return cmp.Or(cmp.Compare(typeName(a), typeName(b)), cmp.Compare(a.PkgPath(), b.PkgPath()), cmp.Compare(a.String(), b.String()))
	})
}

// operationID returns an ID for an operation without a name, such as getUsersById.
func operationID(method, template string) string {
	b := strings.ToLower(method)
	for segment := range strings.SplitSeq(template, "/") {
		if name, isParam := strings.CutPrefix(segment, "{"); isParam && strings.HasSuffix(name, "}") {
			segment = "by_" + strings.TrimSuffix(name, "}")
		}
		for word := range strings.FieldsFuncSeq(segment, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			b += exportedName(word)
		}
	}
	return notInNames.ReplaceAllString(b, "")
}
