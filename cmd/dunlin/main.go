// Dunlin is the command-line tool of the framework.
//
//	dunlin openapi write [-o file] [package]   write the OpenAPI document of a service, without serving
//	dunlin openapi diff old.json new.json      list breaking changes; the exit status is 1 if there are any
package main

import (
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  dunlin openapi write [-o file] [package [arguments]]
        run a program that calls openapi.Export, and write its document
        instead of listening; package is one for go run, "." by default
  dunlin openapi diff [-all] old.json new.json
        list what breaks clients of the old document, with -all every
        change; the status is 1 when something breaks
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command and returns its exit status: 0 for success, 1 if diff found breaking changes,
// 2 for an error.
func run(args []string, out, errors io.Writer) int {
	if len(args) >= 2 && args[0] == "openapi" {
		switch args[1] {
		case "write":
			return write(args[2:], out, errors)
		case "diff":
			return diff(args[2:], out, errors)
		}
	}
	fmt.Fprint(errors, usage)
	return 2
}
