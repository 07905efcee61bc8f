package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// matrixRun has wins, losses, overlaps, transports and every kind of missing cell.
func matrixRun() *results.Run {
	row := func(peer string, metric results.Metric, values ...float64) results.Row {
		r := results.Row{Peer: peer}
		for _, v := range values {
			r.Rounds = append(r.Rounds, results.Sample{metric.Key: v})
		}
		return r
	}
	cpu := []string{results.CPU.Key}
	return &results.Run{
		Peers: []results.Peer{
			{Name: "dunlin"}, {Name: "zed", Failed: map[string]string{"echo": "/echo: status 404"}}, {Name: "alpha"},
			{Name: "idle"}, {Name: "dunlin-tls"}, {Name: "alpha-tls"}, {Name: "floor"},
		},
		Scenarios: []results.Scenario{
			{Name: "json", Title: "JSON <b>|", Metrics: cpu, Rows: []results.Row{
				row("dunlin", results.CPU, 10, 10, 10), row("zed", results.CPU, 5, 5, 5), row("alpha", results.CPU, 20, 20, 20),
				row("late<i>", results.CPU, 9, 9, 11), row("floor", results.CPU, 1, 1, 1), row("dunlin-std", results.CPU, 1, 1, 1)}},
			{Name: "echo-1k", Title: "Echo", Metrics: cpu, Rows: []results.Row{
				row("dunlin", results.CPU, 10, 10, 10), {Peer: "alpha", Failed: `it "fell" over`}, row("late<i>", results.CPU, 10.1, 10.1, 10.1)}},
			{Name: "tls-64", Title: "TLS", Metrics: cpu, Rows: []results.Row{
				row("dunlin", results.CPU, 1, 1, 1), row("dunlin-tls", results.CPU, 10, 10, 10), row("alpha-tls", results.CPU, 40, 40, 40), row("zed", results.CPU, 2, 2, 2)}},
			{Name: "file", Title: "File", Metrics: []string{results.CPUPerGB.Key}, Rows: []results.Row{row("alpha", results.CPUPerGB, 300)}},
			{Name: "idle-memory", Title: "Idle", Metrics: []string{results.PerConn.Key}, Rows: []results.Row{row("dunlin", results.PerConn, 200), row("alpha", results.PerConn, 100)}},
		},
	}
}

func TestMatrix(t *testing.T) {
	m := report.MatrixOf(matrixRun())
	if want := []string{"zed", "alpha", "late<i>"}; !slices.Equal(m.Servers, want) {
		t.Errorf("got columns %q, want those of servers with a figure, in the order of the run: %q", m.Servers, want)
	}
	var got []string
	for _, row := range m.Rows {
		cells := []string{row.Scenario, row.Own.Text, row.Label()}
		for _, c := range row.Cells {
			cells = append(cells, c.Text+" "+c.Class)
		}
		got = append(got, strings.Join(cells, "; "))
	}
	want := []string{
		"json; 10 µs; zed ▼0.50×; ▼0.50× lose2; 2.00× win2; ▼0.90×≈ lose1",
		"echo-1k; 10 µs; late<i> 1.01×; not served none; not served none; 1.01× even",
		"tls-64; 10 µs; alpha 4.00×; not measured none; 4.00× win3; not measured none",
		"file; not measured; not measured; not measured none; no ratio none; not measured none",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := m.Counts(), (report.Counts{Less: 2, Even: 1, More: 2, Within: 1}); got != want {
		t.Errorf("got counts %+v, want %+v", got, want)
	}
	if got, want := m.Rows[1].Cells[0].Detail, "/echo: status 404"; got != want {
		t.Errorf("got reason %q, want %q", got, want)
	}
}

func TestMatrixInPages(t *testing.T) {
	document, err := report.NewDocument(matrixRun(), nil)
	if err != nil {
		t.Fatal(err)
	}
	markdown, err := document.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	html, err := document.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| scenario | **Dunlin** | best other | zed | alpha | late&lt;i> |\n",
		"| **JSON &lt;b>\\|** | **10 µs** | **zed ▼0.50×** | **▼0.50×** | 2.00× | **▼0.90×≈** |\n",
		"| Echo | **10 µs** | late&lt;i> 1.01× | not served | not served | 1.01× |\n",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("got no %q in\n%s", want, markdown)
		}
	}
	for _, want := range []string{
		`class="loses"><a href="#json">JSON &lt;b&gt;|</a>`, `<th>late&lt;i&gt;`, `title="it &#34;fell&#34; over">not served`,
		`<td class="lose2" title="zed: 5 µs">▼0.50×`, `<td class="own" title="dunlin: 10 µs">10 µs`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("got no %q in\n%s", want, html)
		}
	}
	for name, page := range map[string]string{"BENCHMARKS.md": markdown, "benchmarks.html": html} {
		matrix, charts, details := strings.Index(page, "as a multiple of Dunlin"), strings.Index(page, "Charts"), strings.Index(page, "Where others are ahead</h2>")
		if name == "BENCHMARKS.md" {
			details = strings.Index(page, "## How to measure")
		}
		if matrix < 0 || charts < matrix || details < charts {
			t.Errorf("%s: got the matrix at %d, the charts at %d, the details at %d", name, matrix, charts, details)
		}
	}
}

func TestOverviews(t *testing.T) {
	document, err := report.NewDocument(matrixRun(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(document.Overviews) != 2 {
		t.Fatalf("got %d overviews, want one of CPU and one of memory", len(document.Overviews))
	}
	for i, want := range [][]string{
		{"JSON &lt;b&gt;|", "10 µs", "zed", "5 µs (0.50×)", "TLS", "40 µs (4.00×)"},
		{"Idle", "200 B/connection", "100 B/connection (0.50×)"},
	} {
		svg := string(document.Overviews[i].SVG)
		for _, text := range want {
			if !strings.Contains(svg, text) {
				t.Errorf("got no %q in\n%s", text, svg)
			}
		}
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	none, err := report.NewDocument(&results.Run{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(none.Overviews) != 0 || len(none.Matrix.Rows) != 0 {
		t.Errorf("run without scenarios: got %d overviews and %d rows", len(none.Overviews), len(none.Matrix.Rows))
	}
}

// A scenario over TLS may show servers in clear text too. Only servers over TLS are compared.
func TestLeadsByTLS(t *testing.T) {
	run := matrixRun()
	alpha := run.Scenario("tls-64").Row("alpha-tls")
	for _, round := range alpha.Rounds {
		round[results.CPU.Key] = 8
	}
	var got []string
	for _, lead := range report.Leads(run) {
		if lead.Scenario.Name == "tls-64" {
			got = append(got, lead.String())
		}
	}
	if want := []string{"TLS, CPU µs/request: Dunlin 10; ahead: alpha-tls (8, 0.800×)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
