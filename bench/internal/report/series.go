package report

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// Readers with color blindness can distinguish lineColors (Okabe and Ito).
var lineColors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0x88, G: 0x88, B: 0x88, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
}

const seriesHeight = 340 * vg.Inch / 96

// SeriesChart draws the values of a scenario over time, with a line for each server. The result is nil if the scenario has no
// such values.
func SeriesChart(s results.Scenario) ([]byte, error) {
	p := newLinePlot()
	p.X.Label.Text = "seconds"
	p.Y.Min = 0
	p.Y.Tick.Marker = plot.TickerFunc(ticks)
	lines := 0
	var styles lineStyles
	for _, row := range s.Rows {
		if row.Series == nil {
			continue
		}
		points := make(plotter.XYs, len(row.Series.Values))
		for i, v := range row.Series.Values {
			points[i] = plotter.XY{X: float64(i+1) * row.Series.Every, Y: v}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("chart of %s over time: %s: %w", s.Name, row.Peer, err)
		}
		styles.apply(line, row.Peer)
		p.Add(line)
		p.Legend.Add(row.Peer, line)
		p.Title.Text = s.Title + ": " + row.Series.Name
		lines++
	}
	if lines == 0 {
		return nil, nil
	}
	p.Y.Max *= 1.02
	p.X.Max *= 1.5 // room for the legend
	writer, err := p.WriterTo(chartWidth, seriesHeight, "svg")
	if err != nil {
		return nil, fmt.Errorf("chart of %s over time: %w", s.Name, err)
	}
	var svg bytes.Buffer
	if _, err := writer.WriteTo(&svg); err != nil {
		return nil, fmt.Errorf("chart of %s over time: %w", s.Name, err)
	}
	return withFallbackFont(svg.Bytes()), nil
}

// newLinePlot returns a plot with the fonts of all charts and a legend at the top right.
func newLinePlot() *plot.Plot {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Label.TextStyle, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		size := style.Font.Size
		style.Font = sans
		style.Font.Size = size
	}
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(10)
	p.BackgroundColor = color.White
	p.Legend.Top = true
	p.Legend.ThumbnailWidth = vg.Points(16)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	return p
}

// lineStyles selects a style for each line of a chart. Variants of the same server have different dashes.
type lineStyles struct{ owns, others int }

// apply gives line the next style for its server.
func (s *lineStyles) apply(line *plotter.Line, server string) {
	if isOwn(server) {
		line.Color, line.Width, line.Dashes = ownColor, vg.Points(2), dashes(s.owns)
		s.owns++
		return
	}
	line.Color, line.Width, line.Dashes = lineColors[s.others%len(lineColors)], vg.Points(1.2), dashes(s.others/len(lineColors))
	s.others++
}

// dashes returns the dashes of the line number n of a color, counted from 0.
func dashes(n int) []vg.Length {
	if n == 0 {
		return nil
	}
	return []vg.Length{vg.Points(float64(2 * n)), vg.Points(2)}
}
