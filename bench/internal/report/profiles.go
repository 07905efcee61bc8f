package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/flame"
)

//go:embed profiles.html.tmpl
var profilesText string

// A ProfilePage is a page with flame graphs of several servers under the load of one scenario, side by side.
type ProfilePage struct {
	Scenario string            `json:"scenario"`
	Title    string            `json:"title"`
	About    string            `json:"about"`
	Command  string            `json:"command"` // the command of the load generator
	Started  time.Time         `json:"started"`
	Commit   string            `json:"commit"`
	Go       string            `json:"go"`
	Every    int               `json:"sampled_every"` // average number of allocated bytes for each allocation that is recorded
	Servers  []ProfiledServer  `json:"servers"`
	svgs     map[string][]byte // by the name of the file
}

// A ProfiledServer is a column of a ProfilePage.
type ProfiledServer struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Graphs  []ProfileGraph `json:"graphs"`
}

// A ProfileGraph is a flame graph with a description.
type ProfileGraph struct {
	Title  string     `json:"title"`
	Figure string     `json:"figure"`
	File   string     `json:"file"` // relative to the folder of the page
	Top    []TopEntry `json:"top"`  // functions with the largest values of their own
}

// A TopEntry is a line of the list of functions below a graph.
type TopEntry struct {
	Function string `json:"function"`
	Share    string `json:"share"`
	Value    string `json:"value"`
}

// topEntries is the number of functions that are listed below a graph.
const topEntries = 8

// Add draws a tree as a flame graph of the last server of the page.
func (p *ProfilePage) Add(file, title, figure string, format func(int64) string, root *flame.Frame) {
	server := &p.Servers[len(p.Servers)-1]
	g := ProfileGraph{Title: title, Figure: figure, File: p.Scenario + "/" + server.Name + "-" + file + ".svg"}
	for _, f := range root.Functions(topEntries) {
		share := fmt.Sprintf("%.1f %%", 100*float64(f.Self)/float64(root.Total))
		g.Top = append(g.Top, TopEntry{f.Name, share, format(f.Self)})
	}
	server.Graphs = append(server.Graphs, g)
	if p.svgs == nil {
		p.svgs = map[string][]byte{}
	}
	p.svgs[g.File] = flame.Graph{Title: server.Name + ": " + title + ", " + figure, Format: format}.SVG(root)
}

// Rows returns the graphs of all servers by title. A row of the page has the graphs with the same title, side by
// side.
func (p *ProfilePage) Rows() [][]ProfileGraph {
	var rows [][]ProfileGraph
	for i := range p.Servers[0].Graphs {
		var row []ProfileGraph
		for _, server := range p.Servers {
			row = append(row, server.Graphs[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// Date returns the date of the profiles.
func (p *ProfilePage) Date() string { return p.Started.Format("2 January 2006") }

// Kinds returns the kinds of functions for the legend.
func (p *ProfilePage) Kinds() []flame.Kind { return flame.Kinds }

// Color returns the color of a kind for a style sheet.
func (p *ProfilePage) Color(k flame.Kind) template.CSS { return template.CSS(k.Color) }

// ProfileFolder is the folder of the pages, relative to the folder of the report.
const ProfileFolder = "profiles"

// Write writes the page and its graphs into docs. It writes a record of the page into records, from which the
// report makes a link to the page.
func (p *ProfilePage) Write(docs, records string) error {
	page, err := template.New("profiles").Parse(profilesText)
	if err != nil {
		return fmt.Errorf("write flame graphs: %w", err)
	}
	var html bytes.Buffer
	if err := page.Execute(&html, p); err != nil {
		return fmt.Errorf("write flame graphs: %w", err)
	}
	record, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("write flame graphs: %w", err)
	}
	folder := filepath.Join(docs, ProfileFolder)
	if err := os.RemoveAll(filepath.Join(folder, p.Scenario)); err != nil { // removes graphs of servers that only an earlier run had
		return fmt.Errorf("write flame graphs: %w", err)
	}
	files := map[string][]byte{
		filepath.Join(folder, p.Scenario+".html"):                 html.Bytes(),
		filepath.Join(records, ProfileFolder, p.Scenario+".json"): append(record, '\n'),
	}
	for name, svg := range p.svgs {
		files[filepath.Join(folder, name)] = svg
	}
	for path, data := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write flame graphs: %w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("write flame graphs: %w", err)
		}
	}
	return nil
}

// ReadProfiles reads the records that Write has written, in the order of the names of the scenarios.
func ReadProfiles(records string) ([]*ProfilePage, error) {
	files, err := filepath.Glob(filepath.Join(records, ProfileFolder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("read flame graphs: %w", err)
	}
	slices.Sort(files)
	var pages []*ProfilePage
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read flame graphs: %w", err)
		}
		page := new(ProfilePage)
		if err := json.Unmarshal(data, page); err != nil {
			return nil, fmt.Errorf("read flame graphs: %s: %w", file, err)
		}
		if len(page.Servers) == 0 {
			return nil, fmt.Errorf("read flame graphs: %s has no server", file)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// ProfileTable returns a table of the figures of a page, with links to its graphs.
func ProfileTable(p *ProfilePage) Table {
	t := Table{Heading: []string{"server"}}
	for _, g := range p.Servers[0].Graphs {
		t.Heading = append(t.Heading, g.Title)
	}
	for _, server := range p.Servers {
		row := []string{server.Name}
		for _, g := range server.Graphs {
			row = append(row, fmt.Sprintf("[%s](%s/%s)", g.Figure, ProfileFolder, g.File))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
