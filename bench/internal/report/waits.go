package report

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// waitPanel is the height of each of the two panels of the chart.
const waitPanel = 300 * vg.Inch / 96

// A waitMetric is a metric for one length of a wait.
type waitMetric struct {
	results.Metric
	label string // on the axis
}

// WaitChart draws the CPU time and the median latency of a request by the length of its wait. Each has a panel with a
// line for each server. The result is nil if the scenario has no such metrics.
func WaitChart(s results.Scenario) ([]byte, error) {
	var cpu, p50 []waitMetric
	for _, key := range s.Metrics {
		metric, _ := results.MetricByKey(key)
		us, is := metric.Wait()
		switch {
		case !is:
		case metric == results.CPUAtWait(us):
			cpu = append(cpu, waitMetric{metric, results.Microseconds(us)})
		default:
			p50 = append(p50, waitMetric{metric, results.Microseconds(us)})
		}
	}
	if len(cpu) == 0 || len(p50) == 0 {
		return nil, nil
	}
	above, err := waitPlot(s, cpu)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	above.Title.Text = s.Title
	above.Y.Label.Text = "µs of server CPU per request"
	above.Y.Min = 0
	above.Y.Tick.Marker = plot.TickerFunc(ticks)
	below, err := waitPlot(s, p50)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	below.Legend = plot.NewLegend() // the upper panel has the legend
	below.Y.Label.Text = "p50 ms (logarithmic)"
	below.X.Label.Text = "wait"
	below.Y.Scale, below.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}

	canvas := vgsvg.New(chartWidth, 2*waitPanel)
	panels := plot.Align([][]*plot.Plot{{above}, {below}}, draw.Tiles{Rows: 2, Cols: 1}, draw.New(canvas))
	above.Draw(panels[0][0])
	below.Draw(panels[1][0])
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, fmt.Errorf("chart %s: %w", s.Name, err)
	}
	return withFallbackFont(svg.Bytes()), nil
}

// waitPlot draws a line for each server, through the medians of the metrics.
func waitPlot(s results.Scenario, metrics []waitMetric) (*plot.Plot, error) {
	p := newLinePlot()
	labels := make([]string, len(metrics))
	for i, metric := range metrics {
		labels[i] = metric.label
	}
	var styles lineStyles
	for _, row := range s.Rows {
		var points plotter.XYs
		for i, metric := range metrics {
			if median := stats.Summarise(row.Values(metric.Key)).Median; median > 0 {
				points = append(points, plotter.XY{X: float64(i), Y: median})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Peer, err)
		}
		styles.apply(line, row.Peer)
		p.Add(line)
		p.Legend.Add(row.Peer, line)
	}
	p.Legend.Padding = vg.Points(2)
	p.NominalX(labels...)
	p.X.Min, p.X.Max = 0, float64(len(metrics)-1)*1.35 // room for the legend
	return p, nil
}
