package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// A measure is a scenario and the metric of it that an overview shows.
type measure struct {
	scenario string
	metric   results.Metric
}

// The overviews of a report. An overview omits scenarios that the run does not have.
var (
	cpuMeasures = []measure{
		{"plaintext-64", results.CPU}, {"json", results.CPU}, {"users", results.CPU}, {"echo-64k", results.CPU}, {"db", results.CPU},
		{"fortunes", results.CPU}, {"tls-64", results.CPU}, {"h2-16x32", results.CPU},
	}
	memoryMeasures = []measure{
		{"idle-memory", results.PerConn}, {"tls-idle-memory", results.PerConn}, {"h2-blocked", results.PerStream},
		{"plaintext-64", results.PeakRSS}, {"users", results.PeakRSS}, {"echo-64k", results.PeakRSS}, {"db", results.PeakRSS},
	}
)

// An Overview is a chart of several scenarios, for the README and for the beginning of the report.
type Overview struct {
	File, Title string
	SVG         template.HTML
}

func overviews(run *results.Run) []Overview {
	var all []Overview
	for _, o := range []struct {
		file, title string
		measures    []measure
	}{
		{"overview-cpu.svg", "Server CPU per request (less is better)", cpuMeasures},
		{"overview-memory.svg", "Memory (less is better)", memoryMeasures},
	} {
		if svg := overviewChart(run, o.title, o.measures); svg != "" {
			all = append(all, Overview{o.file, o.title, template.HTML(svg)})
		}
	}
	return all
}

// An overviewGroup has Dunlin, net/http and the best other server in one scenario.
type overviewGroup struct {
	title string
	bars  []bar
	unit  string
}

func groupOf(run *results.Run, m measure) (overviewGroup, bool) {
	s := run.Scenario(m.scenario)
	if s == nil || !slices.Contains(s.Metrics, m.metric.Key) {
		return overviewGroup{}, false
	}
	own, suffix := matrixOwn(s)
	if own == nil || len(own.Values(m.metric.Key)) == 0 {
		return overviewGroup{}, false
	}
	g := overviewGroup{title: s.Title, unit: overviewUnit(m.metric), bars: []bar{{"Dunlin", stats.Summarise(own.Values(m.metric.Key))}}}
	var best bool
	for _, b := range bars(*s, m.metric) { // the best server is first
		name, competes := serverOf(b.name)
		if !competes || suffixOf(b.name) != suffix || best && name != "nethttp" {
			continue
		}
		best = true
		g.bars = append(g.bars, bar{name, b.Summary})
	}
	return g, true
}

// overviewUnit returns the unit of a figure, as an overview shows it.
func overviewUnit(metric results.Metric) string {
	switch metric.Key {
	case results.CPU.Key:
		return "µs"
	case results.PeakRSS.Key:
		return "MB at peak"
	}
	return metric.Label
}

const overviewStyle = `text{font:13px Helvetica,Arial,sans-serif;fill:#222}.t{font-size:15px;font-weight:bold}.g{font-weight:bold}` +
	`.bg{fill:#fff}.o{fill:#c05a1c}.p{fill:#8f9ba8}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.bg{fill:#16181c}.o{fill:#e58a4e}.p{fill:#77828f}}`

// overviewChart draws the groups as horizontal bars. The longest bar of each group has the full length, because the
// units of the groups differ. The result is empty if there is no group.
func overviewChart(run *results.Run, title string, measures []measure) string {
	const width, left, full, pitch, head = 480, 76, 190, 20, 26
	var b strings.Builder
	y := 44
	groups := 0
	for _, m := range measures {
		g, has := groupOf(run, m)
		if !has {
			continue
		}
		groups++
		fmt.Fprintf(&b, "<text class=\"g\" x=\"8\" y=\"%d\">%s</text>\n", y+14, template.HTMLEscapeString(g.title))
		y += head - 4
		longest := 0.0
		for _, one := range g.bars {
			longest = max(longest, one.Median)
		}
		for i, one := range g.bars {
			class, length := "p", 1.0
			if i == 0 {
				class = "o"
			}
			if longest > 0 {
				length = max(1, full*one.Median/longest)
			}
			text := results.Format(one.Median) + " " + g.unit
			if own := g.bars[0].Median; i > 0 && own > 0 {
				text += fmt.Sprintf(" (%.2f×)", one.Median/own)
			}
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"15\"/><text x=\"%.1f\" y=\"%d\">%s</text>\n",
				left-6, y+12, template.HTMLEscapeString(one.name), class, left, y, length, left+length+6, y+12, template.HTMLEscapeString(text))
			y += pitch
		}
		y += 6
	}
	if groups == 0 {
		return ""
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" class=\"overview\">\n<style>%s</style>\n"+
		"<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n<text class=\"t\" x=\"8\" y=\"26\">%s</text>\n%s</svg>\n",
		width, y+4, width, y+4, overviewStyle, width, y+4, template.HTMLEscapeString(title), b.String())
}
