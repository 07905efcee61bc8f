package openapi

import "strings"

// shapeOf returns a template without the names of its parameters. Templates with the same shape
// match the same paths.
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

// constraintPatterns maps the constraints of the router that JSON Schema can express to patterns
// for the whole value.
var constraintPatterns = map[string]string{
	"int": `^-?[0-9]+$`, "uint": `^[0-9]+$`, "hex": `^[0-9a-fA-F]+$`, "alpha": `^[a-zA-Z]+$`, "alnum": `^[0-9a-zA-Z]+$`,
	"slug": `^[a-z0-9]+(-[a-z0-9]+)*$`, "bool": `^(true|false)$`,
}

var constraintFormats = map[string]string{"uuid": "uuid", "ipv4": "ipv4", "ipv6": "ipv6", "date": "date"}
