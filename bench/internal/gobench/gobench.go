//go:build linux

// Package gobench runs the Go benchmarks of the bench module and reads their output.
package gobench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// folders with benchmarks, in the order of the report. One that is not there is passed over.
var folders = []string{"seeds", "router"}

// Command runs every benchmark count times on one core.
func Command(bench string, count int, short bool) proc.Command {
	args := []string{"test", "-run=^$", "-bench=.", "-benchmem", "-cpu=1", "-count=" + strconv.Itoa(count)}
	if short {
		args = append(args, "-short", "-benchtime=10ms")
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(bench, folder)); err == nil {
			args = append(args, "./"+folder)
		}
	}
	return proc.Command{Path: "go", Args: args, Dir: bench}
}

// Run runs them all.
func Run(ctx context.Context, bench string, count int, short bool) ([]results.Benchmark, error) {
	out, err := proc.Run(ctx, Command(bench, count, short))
	if err != nil {
		return nil, fmt.Errorf("run the Go benchmarks: %w", err)
	}
	return Parse(strings.NewReader(out))
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
