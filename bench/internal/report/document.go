package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	texttemplate "text/template"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

//go:embed benchmarks.md.tmpl
var markdownText string

//go:embed benchmarks.html.tmpl
var htmlText string

// A Document has the contents of the two pages of the report.
type Document struct {
	Run        *results.Run
	Date       string
	Matrix     Matrix
	Overviews  []Overview
	Sections   []Section
	Explained  []Explained // leads of other servers, with explanations
	Open       []Lead      // leads without an explanation
	Benchmarks []BenchmarkSection
	Profiles   []*ProfilePage // pages of flame graphs, for links
}

// A Section is a scenario with its table and its chart.
type Section struct {
	results.Scenario
	Table     Table
	ChartFile string        // empty if the scenario has no chart
	SVG       template.HTML // for the HTML page, which must not need other files
	svg       []byte

	SeriesFile string // the chart of the values over time; empty if there is none
	SeriesSVG  template.HTML
	series     []byte
}

// A BenchmarkSection is a package of Go benchmarks.
type BenchmarkSection struct {
	Package string
	Table   Table
}

// NewDocument draws the charts and makes the tables.
func NewDocument(run *results.Run, notes []Note) (*Document, error) {
	d := &Document{Run: run, Date: run.Started.Format("2 January 2006"), Matrix: MatrixOf(run), Overviews: overviews(run)}
	for _, s := range run.Scenarios {
		section := Section{Scenario: s, Table: TableOf(s)}
		if metric, known := results.MetricByKey(s.Metrics[0]); known {
			svg, err := WaitChart(s)
			if svg == nil && err == nil {
				svg, err = Chart(s, metric)
			}
			if err != nil {
				return nil, err
			}
			if svg != nil {
				section.svg = svg
				section.ChartFile = s.Name + ".svg"
				section.SVG = inline(svg)
			}
		}
		series, err := SeriesChart(s)
		if err != nil {
			return nil, err
		}
		if series != nil {
			section.series, section.SeriesFile, section.SeriesSVG = series, s.Name+"-over-time.svg", inline(series)
		}
		d.Sections = append(d.Sections, section)
	}
	d.Explained, d.Open = explain(Leads(run), notes)
	for _, pkg := range BenchmarkPackages(run.Benchmarks) {
		d.Benchmarks = append(d.Benchmarks, BenchmarkSection{pkg, BenchmarkTable(run.Benchmarks, pkg)})
	}
	return d, nil
}

// ProfileTable returns the table of a page of flame graphs.
func (d *Document) ProfileTable(p *ProfilePage) Table { return ProfileTable(p) }

// inline removes the XML declaration, which is valid only at the beginning of a file. The SVG needs no escaping, because this
// program has drawn it.
func inline(svg []byte) template.HTML {
	if at := bytes.Index(svg, []byte("<svg")); at > 0 {
		svg = svg[at:]
	}
	return template.HTML(svg)
}

// Markdown returns the text of docs/BENCHMARKS.md.
func (d *Document) Markdown() (string, error) {
	page, err := texttemplate.New("markdown").Parse(markdownText)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	var b strings.Builder
	if err := page.Execute(&b, d); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return b.String(), nil
}

// HTML returns a page that needs no other files.
func (d *Document) HTML() (string, error) {
	page, err := template.New("html").Parse(htmlText)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	var b strings.Builder
	if err := page.Execute(&b, d); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return b.String(), nil
}

// Write writes BENCHMARKS.md, benchmarks.html and the folder charts into folder.
func (d *Document) Write(folder string) error {
	markdown, err := d.Markdown()
	if err != nil {
		return err
	}
	html, err := d.HTML()
	if err != nil {
		return err
	}
	charts := filepath.Join(folder, "charts")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	files := map[string][]byte{
		filepath.Join(folder, "BENCHMARKS.md"):   []byte(markdown),
		filepath.Join(folder, "benchmarks.html"): []byte(html),
	}
	for _, o := range d.Overviews {
		files[filepath.Join(charts, o.File)] = []byte(o.SVG)
	}
	for _, section := range d.Sections {
		if section.ChartFile != "" {
			files[filepath.Join(charts, section.ChartFile)] = section.svg
		}
		if section.SeriesFile != "" {
			files[filepath.Join(charts, section.SeriesFile)] = section.series
		}
	}
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
