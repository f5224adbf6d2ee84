package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// charts draws what the tables say and returns the files' names. What was not measured
// has no chart.
func (r *Results) charts(out string) (names []string, err error) {
	for _, c := range []struct {
		name string
		draw func() *plot.Plot
	}{
		{"durable-by-size.svg", r.bySize},
		{"caller-waits.svg", r.callerWaits},
		{"burst.svg", r.burstChart},
	} {
		p := c.draw()
		if p == nil {
			continue
		}
		p.BackgroundColor = color.White
		if err := p.Save(22*vg.Centimeter, 12*vg.Centimeter, filepath.Join(out, c.name)); err != nil {
			return nil, err
		}
		names = append(names, c.name)
	}
	return names, nil
}

// titled are the tables whose title begins so.
func (r *Results) titled(prefix string) (found []*Table) {
	for _, t := range r.Tables {
		if strings.HasPrefix(t.Title, prefix) && len(t.Rows) > 0 {
			found = append(found, t)
		}
	}
	return found
}

// label is a contender's name, marked where it is not durable.
func label(r Row) string {
	if strings.HasPrefix(kindOf(r.Name).Durable, "**not") {
		return r.Name + " (not durable)"
	}
	return r.Name
}

// newPlot has a logarithmic axis of milliseconds.
func newPlot(title, x string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = x, "milliseconds"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = 8
	p.Add(plotter.NewGrid())
	return p
}

// milliseconds of what a logarithmic axis can show.
func milliseconds(ns float64) float64 { return math.Max(ns, 1) / 1e6 }

// series adds a line for each contender that is in all tables' rows.
func series(p *plot.Plot, tables []*Table, x func(i int) float64, y func(Row) float64) {
	for i, first := range tables[0].Rows {
		var points plotter.XYs
		for j, t := range tables {
			if row, ok := t.row(first.Name); ok {
				points = append(points, plotter.XY{X: x(j), Y: milliseconds(y(row))})
			}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			continue // a single value that is no number: the table shows it
		}
		line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		if strings.HasPrefix(kindOf(first.Name).Durable, "**not") {
			line.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
		}
		if first.Name == Ours {
			line.Width = vg.Points(3)
		}
		p.Add(line, dots)
		p.Legend.Add(label(first), line, dots)
	}
}

func (r *Results) bySize() *plot.Plot {
	tables := r.titled("One save until durable")
	if len(tables) == 0 {
		return nil
	}
	p := newPlot("One save until durable, by the size of the plan (median)", "tasks")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	series(p, tables, func(i int) float64 { return float64(r.Scale.Sizes[i]) }, func(row Row) float64 { return row.P50 })
	return p
}

func (r *Results) callerWaits() *plot.Plot {
	tables := append(r.titled("What the caller of Save waits"), r.titled("The longest that a caller")...)
	if len(tables) == 0 {
		return nil
	}
	p := newPlot("What the caller of Save waits, 200 saves a second (p99; of the stall the longest)", "")
	p.NominalX([]string{"disk idle", fmt.Sprintf("fsync + %s", r.Scale.Hold), fmt.Sprintf("fsync hangs %s", r.Scale.Stall)}[:len(tables)]...)
	series(p, tables, func(i int) float64 { return float64(i) }, func(row Row) float64 { return row.P99 })
	return p
}

// burstChart has the contenders side by side.
func (r *Results) burstChart() *plot.Plot {
	tables := r.titled("A burst of")
	if len(tables) == 0 {
		return nil
	}
	p := newPlot(fmt.Sprintf("A burst of %s saves (median)", thousands(r.Scale.Triggers)), "")
	var names []string
	for _, row := range tables[0].Rows {
		names = append(names, label(row))
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/8, draw.XRight, draw.YTop
	p.X.Tick.Label.Font.Size = 8
	for i, what := range []string{"last save until durable", "what one save keeps its caller", "first save until durable"} {
		if i >= len(tables) {
			break
		}
		var points plotter.XYs
		for j, row := range tables[i].Rows {
			points = append(points, plotter.XY{X: float64(j), Y: milliseconds(row.P50)})
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			continue
		}
		dots.Color, dots.Shape, dots.Radius = plotutil.Color(i), plotutil.Shape(i), vg.Points(4)
		p.Add(dots)
		p.Legend.Add(what, dots)
	}
	return p
}
