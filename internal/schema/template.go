package schema

import "strings"

// Template converts a pattern of package router to a path template: it removes constraints, which
// may contain braces, and the dots of a catch-all:
//
//	/users/{id:int}/files/{path...}  →  /users/{id}/files/{path}
func Template(pattern string) string {
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

// closing returns the offset of the brace that closes the brace at i.
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
