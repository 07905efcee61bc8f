package report_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/dunlinhttp/dunlin/bench/internal/flame"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a run with an example of everything that a page shows.
func sample() *results.Run {
	rounds := func(cpu ...float64) (samples []results.Sample) {
		for _, v := range cpu {
			samples = append(samples, results.Sample{results.CPU.Key: v, results.Throughput.Key: 1e6 / v, results.Errors.Key: 0})
		}
		return samples
	}
	return &results.Run{
		Started: time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC), Took: "12s", Commit: "0123456789", Modified: true,
		Options: "-short", Others: 0.25,
		Machine: results.Machine{
			CPU: "Some CPU", Cores: 2, Memory: "1024 kB", Kernel: "Linux 6", Go: "go1.26", Pinned: true,
			Tools: map[string]string{"wrk": "wrk 4.1.0", "cargo": ""},
		},
		Peers: []results.Peer{
			{Name: "dunlin", Language: "Go", Version: "this commit", Command: "users -addr 127.0.0.1:3000"},
			{Name: "fast", Language: "C", Version: "1", Failed: map[string]string{"echo": "/echo: status 404"}},
			{Name: "gone", Language: "Rust", Skipped: "cargo is not installed"},
		},
		Scenarios: []results.Scenario{{
			Name: "json", Title: "A small JSON object", About: "One field.", Commands: []string{"wrk -t1 http://127.0.0.1:3000/json"},
			Metrics: []string{results.CPU.Key, results.Throughput.Key, results.Errors.Key},
			Rows: []results.Row{
				{Peer: "dunlin", Rounds: rounds(8, 10, 9)},
				{Peer: "fast", Rounds: rounds(5, 4.5, 4), Series: &results.Series{Name: "goroutines", Every: 0.1, Values: []float64{4, 900, 1000}}},
				{Peer: "close", Rounds: rounds(8, 8.5, 9)},
				{Peer: "floor", Rounds: rounds(1, 1, 1)},
				{Peer: "broken", Failed: "it fell over"},
			},
		}},
		Benchmarks: []results.Benchmark{
			{Package: "seeds", Name: "JSON/dunlin", Values: map[string][]float64{"ns/op": {40, 42}, "allocs/op": {0, 0}}},
			{Package: "seeds", Name: "JSON/fast", Values: map[string][]float64{"ns/op": {30, 31}, "allocs/op": {0, 0}}},
			{Package: "seeds", Name: "JSON/close", Values: map[string][]float64{"ns/op": {39, 41}, "allocs/op": {1, 1}}},
		},
	}
}

func TestPages(t *testing.T) {
	document, err := report.NewDocument(sample(), []report.Note{
		{Title: "Elsewhere", Scenarios: []string{"param"}, Text: "Not shown: nobody is ahead there."},
		{Title: "The encoder", Scenarios: []string{"json"}, Metrics: []string{results.CPU.Key}, Peers: []string{"fast"}, Text: "It would take a faster one."},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := document.Write(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"BENCHMARKS.md", "benchmarks.html", "charts/json.svg", "charts/json-over-time.svg"} {
		golden(t, name, filepath.Join(folder, name))
	}
}

// golden compares a file with testdata; with the flag -update it writes the file.
func golden(t *testing.T, name, path string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join("testdata", filepath.Base(name))
	if *update {
		if err := os.WriteFile(kept, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs from %s; if this is intended, run go test ./internal/report -update and check the difference", name, kept)
	}
}

func TestChartIsXML(t *testing.T) {
	svg, err := report.Chart(sample().Scenarios[0], results.CPU)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if none, err := report.Chart(sample().Scenarios[0], results.IdleCPU); none != nil || err != nil {
		t.Errorf("chart of a metric without values: got %d bytes, %v", len(none), err)
	}
}

func TestWaitChart(t *testing.T) {
	s := results.Scenario{Name: "waits", Title: "By the length of a wait"}
	row := results.Row{Peer: "dunlin-db", Rounds: []results.Sample{{}}}
	for _, us := range []int{0, 50, 1000} {
		for _, metric := range []results.Metric{results.CPUAtWait(us), results.P50AtWait(us)} {
			s.Metrics = append(s.Metrics, metric.Key)
			row.Rounds[0][metric.Key] = float64(us + 1)
		}
	}
	s.Rows = []results.Row{row, {Peer: "fast", Rounds: row.Rounds}, {Peer: "broken", Failed: "it fell over"}}
	document, err := report.NewDocument(&results.Run{Scenarios: []results.Scenario{s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	svg := string(document.Sections[0].SVG)
	for _, want := range []string{"By the length of a wait", "50 µs", "1 ms", "p50 ms", "µs of server CPU", "dunlin-db", "fast"} {
		if !strings.Contains(svg, want) {
			t.Errorf("got a chart without %q", want)
		}
	}
	if strings.Contains(svg, "broken") {
		t.Error("a server without figures is in the chart")
	}
	if none, err := report.WaitChart(sample().Scenarios[0]); none != nil || err != nil {
		t.Errorf("chart of waits of a scenario without waits: got %d bytes, %v", len(none), err)
	}
}

func TestLeads(t *testing.T) {
	leads := report.Leads(sample())
	if len(leads) != 3 {
		t.Fatalf("got %d leads, want one in CPU, one in throughput and one in a Go benchmark: %v", len(leads), leads)
	}
	if got, want := leads[2].String(), "Go benchmark JSON, ns/op: Dunlin 41; ahead: fast (30.5, 0.744×)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// "close" overlaps with Dunlin's rounds, and the floor is not a server.
	want := "A small JSON object, CPU µs/request: Dunlin 9; ahead: fast (4.50, 0.500×)"
	if got := leads[0].String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestText(t *testing.T) {
	got := report.TableOf(sample().Scenarios[0]).Text()
	want := `server  CPU µs/request                 requests/s  errors
dunlin        9 (8–10)  111,111 (100,000–125,000)       0
fast        4.50 (4–5)  222,222 (200,000–250,000)       0
close       8.50 (8–9)  117,647 (111,111–125,000)       0
floor                1                  1,000,000       0
without broken: it fell over
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.json")
	if notes, err := report.ReadNotes(path); notes != nil || err != nil {
		t.Errorf("missing file: got %v, %v", notes, err)
	}
	if err := os.WriteFile(path, []byte(`[{"title": "why"`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := report.ReadNotes(path); err == nil {
		t.Error("truncated file: got no error")
	}
}

func TestProfilePage(t *testing.T) {
	root, err := flame.Tree(&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu"}},
		Sample: []*profile.Sample{{Value: []int64{7}, Location: []*profile.Location{
			{Line: []profile.Line{{Function: &profile.Function{Name: "some/pkg.F"}}}}}}},
	}, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	page := &report.ProfilePage{Scenario: "json", Title: "A small JSON object", Commit: "0123456789"}
	for _, name := range []string{"dunlin", "fast"} {
		page.Servers = append(page.Servers, report.ProfiledServer{Name: name, Version: "1"})
		page.Add("cpu", "processor time", "7 ms", func(int64) string { return "7 ms" }, root)
	}
	docs, records := t.TempDir(), t.TempDir()
	if err := page.Write(docs, records); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(filepath.Join(docs, "profiles", "json.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data="json/dunlin-cpu.svg"`, `data="json/fast-cpu.svg"`, "<td>pkg.F", "A small JSON object"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("got no %s in\n%s", want, html)
		}
	}
	svg, err := os.ReadFile(filepath.Join(docs, "profiles", "json", "fast-cpu.svg"))
	if err != nil || !strings.Contains(string(svg), "some/pkg.F: 7 ms, 100.0 %") {
		t.Errorf("%v in\n%s", err, svg)
	}
	document, err := report.NewDocument(sample(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if document.Profiles, err = report.ReadProfiles(records); err != nil {
		t.Fatal(err)
	}
	markdown, err := document.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	standalone, err := document.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(markdown, "| fast | [7 ms](profiles/json/fast-cpu.svg) |") || !strings.Contains(markdown, "(profiles/json.html)") ||
		!strings.Contains(standalone, `href="profiles/json.html"`) {
		t.Errorf("got a report without a link to the graphs:\n%s", markdown)
	}
}
