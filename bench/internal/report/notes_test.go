//go:build linux

package report_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// A name that is misspelt would leave its note out for ever.
func TestNotesNameWhatExists(t *testing.T) {
	notes, err := report.ReadNotes("../../notes.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		if n.Title == "" || n.Text == "" {
			t.Errorf("notes.json: a note without title or text: %+v", n)
		}
		if n.Benchmark {
			continue // a Go benchmark's names are those of its code
		}
		if _, err := scenario.Named(n.Scenarios); err != nil {
			t.Errorf("notes.json, %s: %v", n.Title, err)
		}
		if _, err := peer.Named(n.Peers); err != nil {
			t.Errorf("notes.json, %s: %v", n.Title, err)
		}
		for _, key := range n.Metrics {
			if metric, known := results.MetricByKey(key); !known || !metric.Judged {
				t.Errorf("notes.json, %s: nobody is compared by the metric %q", n.Title, key)
			}
		}
	}
}

// The charts of the README are those that the report writes.
func TestReadmeShowsChartsOfScenarios(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	charts := regexp.MustCompile(`docs/charts/([a-z0-9-]+)\.svg`).FindAllSubmatch(readme, -1)
	if len(charts) < 2 {
		t.Errorf("README.md shows %d charts, want two", len(charts))
	}
	for _, chart := range charts {
		if _, err := scenario.Named([]string{string(chart[1])}); err != nil {
			t.Errorf("README.md shows %s: %v", chart[0], err)
		}
	}
}
