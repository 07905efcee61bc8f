package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// Matrix has the CPU time of a request in every scenario, relative to Dunlin's.
type Matrix struct {
	Servers []string // the columns, without Dunlin, in the order of the run
	Rows    []MatrixRow
}

// MatrixRow is one scenario.
type MatrixRow struct {
	Scenario, Title string
	Own             Ratio
	Best            Ratio // the server that uses the least CPU time, without Dunlin
	Cells           []Ratio
}

// Ratio is a cell: the CPU time of a server divided by Dunlin's.
type Ratio struct {
	Server string
	Text   string
	Class  string // selects the color in the HTML page
	Detail string // the figures, or the reason why there are none
	Within bool   // the difference is not larger than the spread of the rounds
	value  float64
}

// These are the classes of a Ratio.
const (
	classOwn     = "own"
	classMissing = "none"
	classEven    = "even"
	classBehind  = "lose1"
	classFar     = "lose2"
	classAhead   = "win1"
	classDouble  = "win2"
	classTriple  = "win3"
)

const (
	notMeasured = "not measured"
	notServed   = "not served"
)

// transports are the suffixes of the peers that are the same server with another transport. A row compares peers with
// the same suffix. If two suffixes match, the longer one must come first.
var transports = []string{"-h2", "-h2c", "-bulk-tls", "-tls", "-db", "-slice"}

// ownVariants lists the rows of Dunlin that are compared with other servers. If a scenario has several of these rows,
// the first one in this list is used.
var ownVariants = []string{"dunlin-h2", "dunlin-h2c", "dunlin-bulk-tls", "dunlin-tls", "dunlin-24MiB-tls", "dunlin-db", "dunlin",
	"dunlin-fromstd", "dunlin-slice"}

// matrixOwn returns Dunlin's row, and the suffix of the peers with which it is compared.
func matrixOwn(s *results.Scenario) (*results.Row, string) {
	for _, name := range ownVariants {
		if row := s.Row(name); row != nil {
			return row, suffixOf(name)
		}
	}
	for _, row := range s.Rows { // the run does not contain Dunlin
		return nil, suffixOf(row.Peer)
	}
	return nil, ""
}

func suffixOf(peer string) string {
	for _, suffix := range transports {
		if strings.HasSuffix(peer, suffix) {
			return suffix
		}
	}
	return ""
}

// serverOf returns the name of a peer without its transport. It returns false for Dunlin and its variants, for the
// floor, and for variants of other servers.
func serverOf(peer string) (string, bool) {
	name := strings.TrimSuffix(peer, suffixOf(peer))
	return name, !isOwn(name) && name != "floor" && !strings.Contains(name, "-")
}

// matrixMetric returns the metric of CPU time that a scenario has. It returns false if the scenario has none.
func matrixMetric(s results.Scenario) (results.Metric, bool) {
	for _, metric := range []results.Metric{results.CPU, results.CPUPerGB} {
		if slices.Contains(s.Metrics, metric.Key) {
			return metric, true
		}
	}
	return results.Metric{}, false
}

// MatrixOf returns the matrix of a run.
func MatrixOf(run *results.Run) Matrix {
	var m Matrix
	var candidates []string
	seen := map[string]bool{}
	for _, p := range run.Peers {
		candidates = append(candidates, p.Name)
	}
	for _, s := range run.Scenarios {
		if _, has := matrixMetric(s); !has {
			continue
		}
		_, suffix := matrixOwn(&s)
		for _, row := range s.Rows {
			if name, competes := serverOf(row.Peer); competes && suffixOf(row.Peer) == suffix {
				seen[name] = true
				candidates = append(candidates, row.Peer)
			}
		}
	}
	for _, peer := range candidates {
		if name, competes := serverOf(peer); competes && seen[name] && !slices.Contains(m.Servers, name) {
			m.Servers = append(m.Servers, name)
		}
	}
	for _, s := range run.Scenarios {
		if metric, has := matrixMetric(s); has {
			m.Rows = append(m.Rows, m.row(run, s, metric))
		}
	}
	return m
}

func (m Matrix) row(run *results.Run, s results.Scenario, metric results.Metric) MatrixRow {
	ownRow, suffix := matrixOwn(&s)
	row := MatrixRow{Scenario: s.Name, Title: s.Title, Own: Ratio{Server: "dunlin", Text: notMeasured, Class: classMissing}}
	var own []float64
	if ownRow != nil {
		own = ownRow.Values(metric.Key)
		row.Own.Server = ownRow.Peer
		if ownRow.Failed != "" {
			row.Own.Text, row.Own.Detail = notServed, ownRow.Failed
		}
	}
	if len(own) > 0 {
		row.Own.Text, row.Own.Class = results.Format(stats.Summarise(own).Median)+" "+shortUnit(metric), classOwn
		row.Own.Detail = ownRow.Peer + ": " + cell(own) + " " + shortUnit(metric)
	}
	row.Best = Ratio{Text: notMeasured, Class: classMissing}
	for _, server := range m.Servers {
		c := ratio(run, s, server+suffix, metric, own)
		c.Server = server
		if c.value > 0 && (row.Best.value == 0 || c.value < row.Best.value) {
			row.Best = c
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}

// shortUnit returns the unit of a metric of CPU time, as a cell shows it.
func shortUnit(metric results.Metric) string {
	return strings.TrimSuffix(strings.TrimPrefix(metric.Label, "CPU "), "/request")
}

func ratio(run *results.Run, s results.Scenario, peer string, metric results.Metric, own []float64) Ratio {
	missing := Ratio{Text: notMeasured, Class: classMissing}
	row := s.Row(peer)
	if row == nil {
		if why := refused(run, s, peer); why != "" {
			missing.Text, missing.Detail = notServed, why
		}
		return missing
	}
	values := row.Values(metric.Key)
	if len(values) == 0 {
		if row.Failed != "" {
			missing.Text, missing.Detail = notServed, row.Failed
		}
		return missing
	}
	detail := peer + ": " + cell(values) + " " + shortUnit(metric)
	base := stats.Summarise(own).Median
	if base == 0 {
		return Ratio{Text: "no ratio", Class: classMissing, Detail: detail}
	}
	value := stats.Summarise(values).Median / base
	value = max(0.01, math.Round(100*value)/100) // the class must be that of the rounded figure
	c := Ratio{Class: classOf(value), Detail: detail, value: value}
	c.Text = mark(c.Class) + fmt.Sprintf("%.2f×", value)
	if c.Class != classEven && !stats.Compare(own, values).Significant {
		c.Text += "≈"
		c.Within = true
	}
	return c
}

// refused returns the reason why a peer does not take part in a scenario, if it failed a check before the measurement.
func refused(run *results.Run, s results.Scenario, peer string) string {
	for _, p := range run.Peers {
		if p.Name != peer {
			continue
		}
		for check, why := range p.Failed {
			if s.Name == check || strings.HasPrefix(s.Name, check+"-") {
				return why
			}
		}
	}
	return ""
}

func classOf(ratio float64) string {
	switch {
	case ratio < 0.8:
		return classFar
	case ratio < 1-minLead:
		return classBehind
	case ratio <= 1+minLead:
		return classEven
	case ratio < 1.5:
		return classAhead
	case ratio < 3:
		return classDouble
	}
	return classTriple
}

// mark returns the sign next to a ratio in which Dunlin uses more CPU time, for readers who cannot distinguish the
// colors.
func mark(class string) string {
	if class == classFar || class == classBehind {
		return "▼"
	}
	return ""
}

// Counts has the numbers of cells in which Dunlin uses less CPU time, as much, and more, and of cells whose difference
// is within the spread.
type Counts struct{ Less, Even, More, Within int }

// Counts returns these numbers for the matrix.
func (m Matrix) Counts() Counts {
	var c Counts
	for _, row := range m.Rows {
		for _, cell := range row.Cells {
			switch cell.Class {
			case classFar, classBehind:
				c.More++
			case classEven:
				c.Even++
			case classAhead, classDouble, classTriple:
				c.Less++
			}
			if cell.Within {
				c.Within++
			}
		}
	}
	return c
}

// Loses reports whether a server in the row uses less CPU time than Dunlin.
func (r MatrixRow) Loses() bool {
	return slices.ContainsFunc(r.Cells, func(c Ratio) bool { return mark(c.Class) != "" })
}

// Label returns the name and the ratio of the best server.
func (r MatrixRow) Label() string {
	return strings.TrimSpace(r.Best.Server + " " + r.Best.Text)
}

// Markdown returns a GitHub table. Cells in which Dunlin uses more CPU time are bold.
func (m Matrix) Markdown() string {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ")
	strong := func(text string, when bool) string {
		if text = escape.Replace(text); when {
			return "**" + text + "**"
		}
		return text
	}
	var b strings.Builder
	b.WriteString("| scenario | **Dunlin** | best other |")
	for _, server := range m.Servers {
		b.WriteString(" " + escape.Replace(server) + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(m.Servers)+2) + "\n")
	for _, row := range m.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s |", strong(row.Title, row.Loses()), strong(row.Own.Text, row.Own.Class == classOwn),
			strong(row.Label(), mark(row.Best.Class) != ""))
		for _, c := range row.Cells {
			b.WriteString(" " + strong(c.Text, mark(c.Class) != "") + " |")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
