package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/dunlinhttp/dunlin/openapi"
)

// write runs a program so that it writes its document.
func write(args []string, out, errors io.Writer) int {
	flags := flag.NewFlagSet("dunlin openapi write", flag.ContinueOnError)
	flags.SetOutput(errors)
	file := flags.String("o", "", "the `file` to write; default: the standard output")
	if flags.Parse(args) != nil {
		return 2
	}
	program := flags.Args()
	if len(program) == 0 {
		program = []string{"."}
	}
	folder, err := os.MkdirTemp("", "dunlin-openapi-*")
	if err != nil {
		fmt.Fprintln(errors, "dunlin:", err)
		return 2
	}
	defer os.RemoveAll(folder)
	made := filepath.Join(folder, "openapi.json")
	command := exec.Command("go", append([]string{"run"}, program...)...)
	command.Env = append(os.Environ(), openapi.ExportVariable+"="+made)
	command.Stdout, command.Stderr = errors, errors
	if err := command.Run(); err != nil {
		fmt.Fprintf(errors, "dunlin: go run %s: %v\n", program[0], err)
		return 2
	}
	doc, err := os.ReadFile(made)
	if err != nil {
		fmt.Fprintf(errors, "dunlin: %s ended without a document: does it call openapi.Export before it serves?\n", program[0])
		return 2
	}
	if *file != "" {
		err = os.WriteFile(*file, doc, 0o644)
	} else {
		_, err = out.Write(doc)
	}
	if err != nil {
		fmt.Fprintln(errors, "dunlin:", err)
		return 2
	}
	return 0
}

// diff prints the changes between two documents.
func diff(args []string, out, errors io.Writer) int {
	flags := flag.NewFlagSet("dunlin openapi diff", flag.ContinueOnError)
	flags.SetOutput(errors)
	all := flags.Bool("all", false, "also list compatible changes")
	if flags.Parse(args) != nil || flags.NArg() != 2 {
		fmt.Fprint(errors, usage)
		return 2
	}
	var docs [2][]byte
	for i, name := range flags.Args() {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(errors, "dunlin:", err)
			return 2
		}
		docs[i] = text
	}
	changes, err := openapi.Diff(docs[0], docs[1])
	if err != nil {
		fmt.Fprintln(errors, "dunlin:", err)
		return 2
	}
	status := 0
	for _, c := range changes {
		if c.Breaking {
			status = 1
		}
		if c.Breaking || *all {
			fmt.Fprintln(out, c)
		}
	}
	return status
}
