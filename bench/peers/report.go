package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Results are what results.json holds.
type Results struct {
	Machine Machine
	Scale   Scale
	Pairs   []PairRow
	Tables  []*Table
}

// write makes results.json, RESULTS.md and the charts in a folder.
func (r *Results) write(out string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "results.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	charts, err := r.charts(out)
	if err != nil {
		return fmt.Errorf("draw charts: %w", err)
	}
	return os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(r.page(charts)), 0o644)
}

func (r *Results) page(charts []string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	m := r.Machine
	p("# Results\n\nWritten by `make bench`%s; do not edit. What is measured and how: [peers/doc.go](peers/doc.go).\n", map[bool]string{true: " (here `make bench-quick`: few samples)"}[m.Quick])
	p("| | |\n|---|---|")
	p("| when | %s |", m.At.Format("2006-01-02 15:04 MST"))
	p("| machine | %s, %d CPUs, %s, kernel %s |", m.CPU, m.CPUs, m.System, m.Kernel)
	p("| file system | %s%s |", m.FileSystem, map[bool]string{false: "; no FUSE here, so that what needs it is left out", true: ""}[m.FUSE])
	p("| load before, after (1, 5, 15 min) | %s, %s |", m.Load, m.LoadAfter)
	p("| tools | %s, git %s |", m.Go, cmp.Or(m.Git, "none"))
	var versions []string
	for _, k := range kinds {
		if v := m.Modules[k.Version]; v != "" && !slices.Contains(versions, k.Version+" "+v) {
			versions = append(versions, k.Version+" "+v)
		}
	}
	p("| modules | %s |\n", strings.Join(versions, ", "))
	p("Figures of different machines do not compare; ratios do, roughly. A ratio is the median of the ratios of %d rounds.", r.Scale.Rounds)
	p("Each row says how durable what it measured is: a figure that is not durable is no equal of one that is.\n")
	for _, c := range charts {
		p("![](%s)\n", c)
	}
	r.bounds(p)
	for _, t := range r.Tables {
		t.print(p)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// bounds prints the table of what this project set itself.
func (r *Results) bounds(p func(string, ...any)) {
	if len(r.Pairs) == 0 {
		return
	}
	p("## Bounds\n\nThe benchmarks of this folder, rounds of a process each: %d. A bound is the least that is wanted.\n", r.Scale.Processes)
	p("| work | lopen | beside | that took | ratio, or figure | lowest..highest | bound | |\n|---|--:|---|--:|--:|--:|--:|---|")
	for _, w := range r.Pairs {
		beside, took := "", ""
		if w.Other != "" {
			beside, took = w.What, amount(w.OtherFigure, w.Unit)
		}
		verdict := "within"
		if w.Value > w.Bound {
			verdict = "**missed**"
		}
		p("| %s | %s | %s | %s | %s | %s..%s | %s | %s |", w.Work, amount(w.Figure, w.Unit), beside, took, number(w.Value), number(w.Low), number(w.High), number(w.Bound), verdict)
	}
	p("")
}

func (t *Table) print(p func(string, ...any)) {
	p("## %s\n", t.Title)
	if t.Note != "" {
		p("%s\n", t.Note)
	}
	ratio := ""
	if t.Base != "" {
		ratio = " x " + t.Base + " |"
	}
	single := !slices.ContainsFunc(t.Rows, func(r Row) bool { return r.N > 1 })
	if single {
		p("| | %s |%s what it promises |", t.Unit, ratio)
		p("|---|--:|%s---|", strings.Repeat("--:|", min(len(ratio), 1)))
	} else {
		p("| | median | p99 | p99.9 | max | medians of rounds |%s samples | what it promises |", ratio)
		p("|---|--:|--:|--:|--:|--:|%s--:|---|", strings.Repeat("--:|", min(len(ratio), 1)))
	}
	for _, r := range t.Rows {
		if ratio != "" {
			ratio = " " + number(r.Ratio) + " |"
		}
		a := func(v float64) string { return amount(v, t.Unit) }
		if single {
			p("| %s | %s |%s %s |", r.Name, a(r.P50), ratio, r.Durable)
			continue
		}
		p99, p999 := a(r.P99), a(r.P999)
		if r.N < 100 { // it would be the longest of all
			p99 = ""
		}
		if r.N < 1000 {
			p999 = ""
		}
		p("| %s | %s | %s | %s | %s | %s..%s |%s %d | %s |", r.Name, a(r.P50), p99, p999, a(r.Max), a(r.Low), a(r.High), ratio, r.N, r.Durable)
	}
	p("")
}

// amount is a figure for people.
func amount(v float64, unit string) string {
	switch unit {
	case "ns", "ns/op", "p50-ns":
		for _, step := range []struct {
			ns   float64
			name string
		}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
			if v >= step.ns {
				return number(v/step.ns) + " " + step.name
			}
		}
		return number(v) + " ns"
	case "bytes":
		if v >= 1<<20 {
			return number(v/(1<<20)) + " MiB"
		}
		if v >= 1<<10 {
			return number(v/(1<<10)) + " KiB"
		}
	}
	return number(v)
}

// number has three digits that count.
func number(v float64) string {
	if v >= 100 {
		return thousands(int(v + 0.5))
	}
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.ContainsRune(s, 'e') {
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return s
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
