package report

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

var (
	ownColor     = color.RGBA{R: 0xc0, G: 0x5a, B: 0x1c, A: 0xff} // the color of a dunlin's breeding plumage
	variantColor = color.RGBA{R: 0xe3, G: 0xb3, B: 0x8f, A: 0xff}
	otherColor   = color.RGBA{R: 0x8f, G: 0x9b, B: 0xa8, A: 0xff}
	rangeColor   = color.RGBA{R: 0x33, G: 0x33, B: 0x33, A: 0xff}
	floorColor   = color.RGBA{R: 0xd5, G: 0xda, B: 0xdf, A: 0xff}
)

const (
	chartWidth = 640 * vg.Inch / 96
	barHeight  = 16 * vg.Inch / 96
	barPitch   = 24 * vg.Inch / 96
	chartFrame = 108 * vg.Inch / 96 // space for the title, the axis and the margins
)

// A bar has the values of one metric of a server, one for each round.
type bar struct {
	name string
	stats.Summary
}

// bars returns the servers that have the metric. The best server is first.
func bars(s results.Scenario, metric results.Metric) []bar {
	var all []bar
	for _, row := range s.Rows {
		if values := row.Values(metric.Key); len(values) > 0 {
			all = append(all, bar{row.Peer, stats.Summarise(values)})
		}
	}
	slices.SortStableFunc(all, func(a, b bar) int {
		if metric.Higher {
			a, b = b, a
		}
		return cmp.Compare(a.Median, b.Median)
	})
	return all
}

// Chart draws a metric of a scenario as an SVG. Each server has a bar that shows the range of its rounds. The best server is at
// the top. The result is nil if no server has the metric.
func Chart(s results.Scenario, metric results.Metric) ([]byte, error) {
	all := bars(s, metric)
	if len(all) == 0 {
		return nil, nil
	}
	slices.Reverse(all) // the plot counts its rows from the bottom
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		size := style.Font.Size
		style.Font = sans
		style.Font.Size = size
	}
	p.Title.Text = s.Title
	p.X.Label.Text = metric.Unit + direction(metric)
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(10)
	p.X.Label.TextStyle.Font.Size = vg.Points(10)
	p.X.Label.Padding = vg.Points(4)
	p.X.Min = 0
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	p.BackgroundColor = color.White

	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
	}
	if err := addBars(p, all); err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	if err := addRanges(p, all, sans); err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	p.NominalY(names...)
	p.X.Max *= 1.12 // room for the figures

	writer, err := p.WriterTo(chartWidth, chartFrame+vg.Length(len(all))*barPitch, "svg")
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	var svg bytes.Buffer
	if _, err := writer.WriteTo(&svg); err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	return withFallbackFont(svg.Bytes()), nil
}

func direction(metric results.Metric) string {
	if metric.Higher {
		return " (more is better)"
	}
	return " (less is better)"
}

func ticks(low, high float64) []plot.Tick {
	marks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range marks {
		if marks[i].Label != "" {
			marks[i].Label = results.Format(marks[i].Value)
		}
	}
	return marks
}

// addBars draws each group of servers in its own color. A bar chart has only one color. Therefore each group is a separate bar
// chart in which the other servers have zeros.
func addBars(p *plot.Plot, all []bar) error {
	colors := []color.Color{ownColor, variantColor, otherColor, floorColor}
	groups := map[color.Color]plotter.Values{}
	for _, c := range colors {
		groups[c] = make(plotter.Values, len(all))
	}
	for i, b := range all {
		groups[colorOf(b.name)][i] = b.Median
	}
	for _, c := range colors {
		chart, err := plotter.NewBarChart(groups[c], barHeight)
		if err != nil {
			return err
		}
		chart.Horizontal = true
		chart.Color = c
		chart.LineStyle.Width = 0
		p.Add(chart)
	}
	return nil
}

func colorOf(server string) color.Color {
	switch {
	case server == "dunlin", server == "dunlin-db":
		return ownColor
	case isOwn(server):
		return variantColor
	case server == "floor":
		return floorColor
	}
	return otherColor
}

// isOwn reports whether a server is Dunlin or a variant of it.
func isOwn(server string) bool {
	return server == "dunlin" || strings.HasPrefix(server, "dunlin-")
}

// ranges has the points and the ranges of error bars.
type ranges struct {
	plotter.XYs
	plotter.XErrors
}

func addRanges(p *plot.Plot, all []bar, sans font.Font) error {
	var r ranges
	labels := plotter.XYLabels{XYs: make(plotter.XYs, len(all)), Labels: make([]string, len(all))}
	for i, b := range all {
		if b.Max > b.Min {
			r.XYs = append(r.XYs, plotter.XY{X: b.Median, Y: float64(i)})
			r.XErrors = append(r.XErrors, struct{ Low, High float64 }{b.Min - b.Median, b.Max - b.Median})
		}
		labels.XYs[i] = plotter.XY{X: b.Max, Y: float64(i)}
		labels.Labels[i] = results.Format(b.Median)
	}
	if len(r.XYs) > 0 {
		errorBars, err := plotter.NewXErrorBars(r)
		if err != nil {
			return err
		}
		errorBars.Color = rangeColor
		errorBars.LineStyle.Width = vg.Points(0.8)
		errorBars.CapWidth = vg.Points(4)
		p.Add(errorBars)
	}
	figures, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range figures.TextStyle {
		sans.Size = vg.Points(9)
		figures.TextStyle[i].Font = sans
		figures.TextStyle[i].YAlign = draw.YCenter
	}
	figures.Offset = vg.Point{X: vg.Points(4)}
	p.Add(figures)
	return nil
}

// withFallbackFont adds the names of fonts that are common on the machines of readers.
func withFallbackFont(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:Helvetica,Arial,Liberation Sans,sans-serif"))
}
