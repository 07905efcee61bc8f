package openapi

import "strings"

// template makes a path template of a pattern: without constraints, and without the dots
// of a catch-all. A constraint may itself hold braces.
//
//	/users/{id:int}/files/{path...}  →  /users/{id}/files/{path}
func template(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		if pattern[i] != '{' {
			b.WriteByte(pattern[i])
			i++
			continue
		}
		end := closing(pattern, i)
		name, _, _ := strings.Cut(pattern[i+1:end], ":")
		b.WriteString("{" + strings.TrimSuffix(name, "...") + "}")
		i = end + 1
	}
	return b.String()
}

// shapeOf is a template with its names left out: two of one shape take the same paths.
func shapeOf(template string) string {
	var b strings.Builder
	for rest := template; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		_, rest, _ = strings.Cut(after, "}")
		b.WriteString("{}")
	}
	return b.String()
}

// closing returns the offset of the brace that closes the one at i.
func closing(pattern string, i int) int {
	depth, class := 0, false
	for ; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '{' && !class:
			depth++
		case c == '}' && !class:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(pattern) - 1
}

// constraints of the router that JSON Schema can say, as patterns of the whole value.
var constraintPatterns = map[string]string{
	"int": `^-?[0-9]+$`, "uint": `^[0-9]+$`, "hex": `^[0-9a-fA-F]+$`, "alpha": `^[a-zA-Z]+$`, "alnum": `^[0-9a-zA-Z]+$`,
	"slug": `^[a-z0-9]+(-[a-z0-9]+)*$`, "bool": `^(true|false)$`,
}

var constraintFormats = map[string]string{"uuid": "uuid", "ipv4": "ipv4", "ipv6": "ipv6", "date": "date"}
