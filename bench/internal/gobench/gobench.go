//go:build linux

// Package gobench runs the Go benchmarks of the module bench and reads their output.
package gobench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// folders has the folders with benchmarks, in the order of the report. A folder that does not exist is skipped.
var folders = []string{"seeds", "router"}

// A Suite has the programs with the benchmarks.
type Suite struct {
	programs []proc.Command // without the arguments of a run
}

// Build builds the benchmarks of all folders into the folder build. If some cannot be built, it returns the others and an
// error.
func Build(ctx context.Context, bench, build string) (*Suite, error) {
	s := &Suite{}
	var failed error
	for _, folder := range folders {
		path := filepath.Join(bench, folder)
		if tests, _ := filepath.Glob(filepath.Join(path, "*_test.go")); len(tests) == 0 {
			continue
		}
		program := filepath.Join(build, folder+".test")
		out, err := proc.Run(ctx, proc.Command{Path: "go", Args: []string{"test", "-c", "-o", program, "."}, Dir: path})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("build the benchmarks in %s: %w%s", folder, err, failures(out)))
			continue
		}
		s.programs = append(s.programs, proc.Command{Path: program, Dir: path})
	}
	return s, failed
}

// Run runs each benchmark once, on one core. If some fail, it returns the results of the others and an error.
func (s *Suite) Run(ctx context.Context, short bool) ([]results.Benchmark, error) {
	args := []string{"-test.run=^$", "-test.bench=.", "-test.benchmem", "-test.cpu=1"}
	if short {
		args = append(args, "-test.short", "-test.benchtime=10ms")
	} else {
		args = append(args, "-test.benchtime=250ms") // many short repetitions are more significant than a few long repetitions
	}
	var all []results.Benchmark
	var failed error
	for _, program := range s.programs {
		program.Args = args
		out, err := proc.Run(ctx, program)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("run the benchmarks in %s: %w%s", filepath.Base(program.Dir), err, failures(out)))
		}
		found, err := Parse(strings.NewReader(out))
		failed = errors.Join(failed, err)
		all = append(all, found...)
	}
	return all, failed
}

// Gather adds another repetition of each benchmark to earlier repetitions.
func Gather(before, more []results.Benchmark) []results.Benchmark {
	for _, b := range more {
		i := slices.IndexFunc(before, func(o results.Benchmark) bool { return o.Package == b.Package && o.Name == b.Name })
		if i < 0 {
			before = append(before, b)
			continue
		}
		for unit, values := range b.Values {
			before[i].Values[unit] = append(before[i].Values[unit], values...)
		}
	}
	return before
}

// failures returns the lines of the output that describe why a benchmark failed.
func failures(out string) string {
	var said strings.Builder
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "--- FAIL") {
			said.WriteString("; " + strings.TrimSpace(line))
		}
	}
	return said.String()
}

// Parse returns the repetitions of each benchmark. The benchmarks are in the order in which the output first names them.
func Parse(r io.Reader) ([]results.Benchmark, error) {
	var found []results.Benchmark
	index := map[string]int{}
	reader := benchfmt.NewReader(r, "go test")
	for reader.Scan() {
		record, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // not a result
		}
		pkg := record.GetConfig("pkg")
		key := pkg + " " + string(record.Name)
		at, seen := index[key]
		if !seen {
			at = len(found)
			index[key] = at
			found = append(found, results.Benchmark{
				Package: pkg[strings.LastIndexByte(pkg, '/')+1:],
				Name:    string(record.Name),
				Values:  map[string][]float64{},
			})
		}
		for _, value := range record.Values {
			// benchfmt converts ns to seconds. The original value and its unit are used.
			if value.OrigUnit != "" {
				value.Value, value.Unit = value.OrigValue, value.OrigUnit
			}
			found[at].Values[value.Unit] = append(found[at].Values[value.Unit], value.Value)
		}
	}
	return found, reader.Err()
}
