package main

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// charts draws what the tables say and returns the files' names. What was not measured
// has no chart.
func (r *Results) charts(out string) (names []string, err error) {
	for _, c := range []struct {
		name string
		draw func() *chart
	}{
		{"durable-by-size.svg", r.bySize},
		{"caller-waits.svg", r.callerWaits},
		{"burst.svg", r.burstChart},
	} {
		chart := c.draw()
		if chart == nil {
			continue
		}
		if err := chart.save(filepath.Join(out, c.name)); err != nil {
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

// A chart is a plot with its legend beside it, where it covers nothing.
type chart struct {
	*plot.Plot
	legend plot.Legend
	aside  vg.Length // the legend's width
}

const (
	chartWidth  = 26 * vg.Centimeter
	chartHeight = 12 * vg.Centimeter
)

func newChart(title string, aside vg.Length) *chart {
	c := &chart{plot.New(), plot.NewLegend(), aside}
	c.Title.Text, c.Title.Padding, c.BackgroundColor = title, vg.Points(8), color.White
	c.legend.Top, c.legend.Left, c.legend.Padding, c.legend.TextStyle.Font.Size = true, true, vg.Points(4), 9
	c.Add(plotter.NewGrid())
	return c
}

func (c *chart) save(name string) error {
	canvas := vgsvg.New(chartWidth, chartHeight)
	all := draw.New(canvas)
	c.Draw(draw.Crop(all, 0, -c.aside, 0, -vg.Points(4)))
	c.legend.Draw(draw.Crop(all, chartWidth-c.aside+vg.Points(8), 0, 0, -vg.Points(36)))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// decades are the ticks of a logarithmic axis, each with its unit.
type decades func(float64) string

// Ticks implements plot.Ticker.
func (label decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for v := math.Pow(10, math.Floor(math.Log10(low))); v <= high*1.001; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: label(math.Round(v))})
		for i := 2.0; i < 10; i++ {
			ticks = append(ticks, plot.Tick{Value: v * i})
		}
	}
	return ticks
}

var (
	times  = decades(func(ns float64) string { return amount(ns, "ns") })
	counts = decades(func(n float64) string { return thousands(int(n)) })
)

// logarithmic sets an axis up.
func logarithmic(a *plot.Axis, text string, ticks decades) {
	a.Label.Text, a.Scale, a.Tick.Marker = text, plot.LogScale{}, ticks
}

// label is a contender's name and, in two words, what it promises.
func label(r Row) string {
	switch {
	case strings.HasPrefix(r.Durable, "accepted"):
		return r.Name + " (durable later)"
	case strings.Contains(r.Durable, "**not"):
		return r.Name + " (NOT durable)"
	case r.Durable == whenSynced:
		return r.Name + " (its name not durable)"
	}
	return r.Name + " (durable)"
}

// colors are as many as there are contenders: of others red is this project's alone.
var colors = []color.Color{
	color.RGBA{214, 39, 40, 255}, color.Gray{60}, color.RGBA{31, 119, 180, 255}, color.RGBA{23, 190, 207, 255},
	color.RGBA{44, 160, 44, 255}, color.RGBA{148, 103, 189, 255}, color.RGBA{197, 148, 226, 255}, color.RGBA{255, 127, 14, 255},
	color.RGBA{188, 143, 34, 255}, color.RGBA{140, 86, 75, 255}, color.RGBA{227, 119, 194, 255}, color.Gray{150},
}

func (r *Results) bySize() *chart {
	tables := r.titled("One save until durable")
	if len(tables) == 0 {
		return nil
	}
	c := newChart("One save and the wait until it is as durable as it gets, by the size of the plan", 8.2*vg.Centimeter)
	logarithmic(&c.X, "tasks in the plan", counts)
	logarithmic(&c.Y, "median of one save", times)
	for i, first := range tables[0].Rows {
		var points plotter.XYs
		for j, t := range tables {
			if row, ok := t.row(first.Name); ok {
				points = append(points, plotter.XY{X: float64(r.Scale.Sizes[j]), Y: math.Max(row.P50, 1)})
			}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			continue // a value that is no number: the table shows it
		}
		line.Color, dots.Color, dots.Shape = colors[i%len(colors)], colors[i%len(colors)], plotutil.Shape(i)
		if strings.Contains(first.Durable, "**not") {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		if first.Name == Ours {
			line.Width = vg.Points(3)
		}
		c.Add(line, dots)
		c.legend.Add(label(first), line, dots)
	}
	c.X.Max *= 1.3 // room for the last tick's text
	return c
}

// beside has the contenders below each other and a mark for each table.
func beside(title, x string, tables []*Table, names []string, value func(Row) float64) *chart {
	if len(tables) == 0 {
		return nil
	}
	c := newChart(title, 6*vg.Centimeter)
	logarithmic(&c.X, x, times)
	rows := tables[0].Rows
	labels := make([]string, len(rows))
	for i, row := range rows {
		labels[len(rows)-1-i] = label(row) // the first one on top
	}
	c.NominalY(labels...)
	c.Y.Tick.Label.Font.Size = 9
	c.Y.Min, c.Y.Max = -0.5, float64(len(rows))-0.5
	marks := []struct {
		color.Color
		draw.GlyphDrawer
	}{{colors[2], draw.CircleGlyph{}}, {colors[7], draw.BoxGlyph{}}, {colors[0], draw.PyramidGlyph{}}}
	for i, t := range tables {
		var points plotter.XYs
		for j, row := range rows {
			if have, ok := t.row(row.Name); ok {
				points = append(points, plotter.XY{X: math.Max(value(have), 1), Y: float64(len(rows) - 1 - j)})
			}
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			continue
		}
		dots.Color, dots.Shape, dots.Radius = marks[i].Color, marks[i].GlyphDrawer, vg.Points(4.5)
		c.Add(dots)
		c.legend.Add(names[i], dots)
	}
	// Room for the marks, and for names in a font that is wider than the one measured here.
	c.X.Min, c.X.Max = c.X.Min/3, c.X.Max*1.5
	return c
}

// callerWaits shows 99th percentiles where every contender has samples enough, and
// medians where one has not.
func (r *Results) callerWaits() *chart {
	tables := append(r.titled("What the caller of Save waits"), r.titled("The longest that a caller")...)
	names := []string{"disk idle", fmt.Sprintf("fsync + %s", r.Scale.Hold), fmt.Sprintf("fsync hangs %s, longest", r.Scale.Stall)}
	p99 := true
	for _, t := range tables[:min(2, len(tables))] {
		p99 = p99 && !slices.ContainsFunc(t.Rows, func(row Row) bool { return row.N < forP99 })
	}
	stat, value := ", median", func(row Row) float64 { return row.P50 }
	if p99 {
		stat, value = ", p99", func(row Row) float64 { return row.P99 }
	}
	names[0], names[1] = names[0]+stat, names[1]+stat
	return beside("What the caller of Save waits, 200 saves a second", "time that one save keeps its caller", tables, names, value)
}

func (r *Results) burstChart() *chart {
	names := []string{"last save until durable", "one save keeps its caller", "first save until durable"}
	return beside(fmt.Sprintf("A burst of %s saves", thousands(r.Scale.Triggers)), "median time", r.titled("A burst of"), names, func(row Row) float64 { return row.P50 })
}
