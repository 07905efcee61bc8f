//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// progress shows the progress of a run: the current step in a status line of the terminal, and the tables
// that are complete.
type progress struct {
	tables, status io.Writer
	live           bool // status is a terminal, so that the line can be overwritten
	start          time.Time
}

func newProgress(tables io.Writer, status *os.File) *progress {
	_, err := unix.IoctlGetTermios(int(status.Fd()), unix.TCGETS)
	return &progress{tables: tables, status: status, live: err == nil, start: time.Now()}
}

const eraseLine = "\r\x1b[K"

func (p *progress) Step(done, all int, what string) {
	text := fmt.Sprintf("[%d/%d %s] %s", done, all, time.Since(p.start).Round(time.Second), what)
	if p.live {
		fmt.Fprint(p.status, eraseLine, text)
	} else {
		fmt.Fprintln(p.status, text)
	}
}

func (p *progress) Note(format string, args ...any) {
	p.clear()
	fmt.Fprintf(p.status, format+"\n", args...)
}

// clear removes the status line, so that other output can follow.
func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.status, eraseLine)
	}
}

func (p *progress) Finished(s results.Scenario) {
	p.clear()
	fmt.Fprintf(p.tables, "%s (%s)\n", s.Title, s.Name)
	for _, command := range s.Commands {
		fmt.Fprintf(p.tables, "  %s\n", command)
	}
	fmt.Fprintf(p.tables, "%s\n", report.TableOf(s).Text())
}

func (p *progress) Benchmarked(benchmarks []results.Benchmark) {
	p.clear()
	for _, pkg := range report.BenchmarkPackages(benchmarks) {
		fmt.Fprintf(p.tables, "Go benchmarks in bench/%s\n%s\n", pkg, report.BenchmarkTable(benchmarks, pkg).Text())
	}
}

func (p *progress) Skipped(peer, why string) { p.Note("without %s: %s", peer, why) }

func (p *progress) Failed(scenario, peer string, err error) {
	p.Note("%s without %s: %v", scenario, peer, err)
}

func (p *progress) Differs(peer string, checks map[string]string) {
	for _, check := range slices.Sorted(maps.Keys(checks)) {
		p.Note("%s differs from the reference (%s): %s", peer, check, checks[check])
	}
}
