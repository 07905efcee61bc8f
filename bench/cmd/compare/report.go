//go:build linux

package main

import (
	"flag"
	"fmt"
	"path/filepath"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// reportCommand writes the report of a file of results. By default it uses the newest of the files that have the most
// scenarios. The scenarios of more files are added, or replace scenarios of the first file.
func reportCommand(args []string) error {
	flags := flag.NewFlagSet("compare report", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	folders, err := layout.Find(".")
	if err != nil {
		return err
	}
	run, err := readRun(folders, flags.Arg(0))
	if err != nil {
		return err
	}
	for _, path := range flags.Args()[min(1, flags.NArg()):] {
		more, err := results.Read(path)
		if err != nil {
			return err
		}
		run.Add(more)
	}
	return writeReport(folders, run)
}

// readRun reads the file at path, or the newest results if path is empty.
func readRun(folders layout.Folders, path string) (*results.Run, error) {
	if path == "" {
		var err error
		if path, err = results.Newest(folders.Results); err != nil {
			return nil, err
		}
	}
	return results.Read(path)
}

func writeReport(folders layout.Folders, run *results.Run) error {
	notes, err := report.ReadNotes(filepath.Join(folders.Bench, "notes.json"))
	if err != nil {
		return err
	}
	document, err := report.NewDocument(run, notes)
	if err != nil {
		return err
	}
	if document.Profiles, err = report.ReadProfiles(folders.Results); err != nil {
		return err
	}
	if err := document.Write(folders.Docs); err != nil {
		return err
	}
	fmt.Printf("wrote BENCHMARKS.md, benchmarks.html and charts in %s\n", folders.Docs)
	return nil
}

// diffCommand compares two files of results.
func diffCommand(args []string) error {
	flags := flag.NewFlagSet("compare diff", flag.ContinueOnError)
	all := flags.Bool("all", false, "also what did not change beyond the spread")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("diff needs two files of results: before and after")
	}
	before, err := results.Read(flags.Arg(0))
	if err != nil {
		return err
	}
	after, err := results.Read(flags.Arg(1))
	if err != nil {
		return err
	}
	differences := report.Differences(before, after)
	if len(differences) == 0 {
		return fmt.Errorf("the two runs have no figure in common")
	}
	table := report.DiffTable(differences, *all)
	if len(table.Rows) > 0 {
		fmt.Print(table.Text())
	}
	beyond := 0
	for _, d := range differences {
		if d.Beyond {
			beyond++
		}
	}
	fmt.Printf("%d figures compared, %d changed beyond the printed spread", len(differences), beyond)
	if n := report.Within(differences); n > 0 {
		fmt.Printf(", %d more differ by the test (chance alone: about %d) but within it; -all lists them", n, len(differences)/20)
	}
	fmt.Println()
	return nil
}
