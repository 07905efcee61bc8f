//go:build linux

// Package gobench runs the Go benchmarks of the bench module and reads their output.
package gobench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// folders with benchmarks, in the order of the report. One that is not there is passed over.
var folders = []string{"seeds", "router"}

// Command runs every benchmark of a folder count times on one core.
func Command(folder string, count int, short bool) proc.Command {
	args := []string{"test", "-run=^$", "-bench=.", "-benchmem", "-cpu=1", "-count=" + strconv.Itoa(count)}
	if short {
		args = append(args, "-short", "-benchtime=10ms")
	} else {
		args = append(args, "-benchtime=250ms") // more repetitions say more than longer ones
	}
	return proc.Command{Path: "go", Args: append(args, "."), Dir: folder}
}

// Run runs them all, folder by folder. If one fails it returns those that did not, beside the error.
func Run(ctx context.Context, bench string, count int, short bool) ([]results.Benchmark, error) {
	var all []results.Benchmark
	var failed error
	for _, folder := range folders {
		path := filepath.Join(bench, folder)
		if tests, _ := filepath.Glob(filepath.Join(path, "*_test.go")); len(tests) == 0 {
			continue
		}
		out, err := proc.Run(ctx, Command(path, count, short))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("run the benchmarks in %s: %w%s", folder, err, failures(out)))
		}
		found, err := Parse(strings.NewReader(out))
		failed = errors.Join(failed, err)
		all = append(all, found...)
	}
	return all, failed
}

// failures quotes the lines that say what failed.
func failures(out string) string {
	var said strings.Builder
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "--- FAIL") {
			said.WriteString("; " + strings.TrimSpace(line))
		}
	}
	return said.String()
}

// Parse gathers the repetitions of each benchmark, in the order in which they first appear.
func Parse(r io.Reader) ([]results.Benchmark, error) {
	var found []results.Benchmark
	index := map[string]int{}
	reader := benchfmt.NewReader(r, "go test")
	for reader.Scan() {
		record, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that is no benchmark
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
			// benchfmt turns ns into seconds and keeps what was written beside it.
			if value.OrigUnit != "" {
				value.Value, value.Unit = value.OrigValue, value.OrigUnit
			}
			found[at].Values[value.Unit] = append(found[at].Values[value.Unit], value.Value)
		}
	}
	return found, reader.Err()
}
