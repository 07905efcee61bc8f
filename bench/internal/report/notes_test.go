//go:build linux

package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// A misspelled name would omit its note from the report.
func TestNotesUseExistingNames(t *testing.T) {
	notes, err := report.ReadNotes("../../notes.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		if n.Title == "" || n.Text == "" {
			t.Errorf("notes.json: a note without title or text: got %+v", n)
		}
		if n.Benchmark {
			continue // Go benchmarks are named in their code
		}
		if _, err := scenario.Named(n.Scenarios); err != nil {
			t.Errorf("notes.json, %s: %v", n.Title, err)
		}
		if _, err := peer.Named(n.Peers); err != nil {
			t.Errorf("notes.json, %s: %v", n.Title, err)
		}
		for _, key := range n.Metrics {
			if metric, known := results.MetricByKey(key); !known || !metric.Judged {
				t.Errorf("notes.json, %s: no scenario compares the metric %q", n.Title, key)
			}
		}
	}
}

// The README shows the charts that the report makes from the recorded rounds.
func TestReadmeShowsOverviews(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, chart := range regexp.MustCompile(`docs/charts/([a-z0-9-]+\.svg)`).FindAllSubmatch(readme, -1) {
		shown = append(shown, string(chart[1]))
	}
	var drawn []string
	for _, o := range recorded(t).Overviews {
		drawn = append(drawn, o.File)
	}
	if len(drawn) != 2 || !slices.Equal(shown, drawn) {
		t.Errorf("README.md shows %q, want the overviews %q of the report", shown, drawn)
	}
}

// The committed pages are the tool's output for the recorded rounds.
func TestCommittedPages(t *testing.T) {
	document, folder := recorded(t), t.TempDir()
	if err := document.Write(folder); err != nil {
		t.Fatal(err)
	}
	charts, err := filepath.Glob(filepath.Join(folder, "charts", "*.svg"))
	if err != nil || len(charts) == 0 {
		t.Fatalf("charts: got %q, %v", charts, err)
	}
	for _, path := range append(charts, filepath.Join(folder, "BENCHMARKS.md"), filepath.Join(folder, "benchmarks.html")) {
		name, err := filepath.Rel(folder, path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s differs from the report: run go run -C bench ./cmd/compare report", name)
		}
	}
}

// recorded is the document of the newest results.
func recorded(t *testing.T) *report.Document {
	t.Helper()
	path, err := results.Newest("../../results")
	if err != nil {
		t.Fatal(err)
	}
	run, err := results.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := report.ReadNotes("../../notes.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := report.NewDocument(run, notes)
	if err != nil {
		t.Fatal(err)
	}
	if document.Profiles, err = report.ReadProfiles("../../results"); err != nil {
		t.Fatal(err)
	}
	return document
}
