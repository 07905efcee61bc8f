//go:build linux

package report_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

func TestNotesAreAboutScenarios(t *testing.T) {
	notes, err := report.ReadNotes("../../notes.json")
	if err != nil {
		t.Fatal(err)
	}
	for name := range notes {
		if _, err := scenario.Named([]string{name}); err != nil {
			t.Errorf("notes.json: %v", err)
		}
	}
}
