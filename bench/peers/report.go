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

// read takes the results of an earlier run.
func (r *Results) read(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, r); err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	return nil
}

// write makes results.json, RESULTS.md and the charts in a folder, and what people
// notice in a readme, if one is named.
func (r *Results) write(out, readme string) error {
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
	if err := os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(r.page(charts)), 0o644); err != nil || readme == "" {
		return err
	}
	return r.intoReadme(readme)
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
	p("Figures of different machines do not compare; ratios do, roughly. A ratio is the median of the ratios of the rounds, at most %d.", r.Scale.Rounds)
	p("The 99th percentile is left out below %d samples, the 99.9th below %d.", forP99, forP999)
	p("Each row says how durable what it measured is: a figure that is not durable is no equal of one that is.\n")
	for _, c := range charts {
		p("![](%s)\n", c)
	}
	p("## What people notice\n\n%s\n", r.peopleNote())
	r.people(p)
	r.bounds(p)
	for _, t := range r.Tables {
		t.print(p)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// enough samples that a percentile is not one of the longest two.
const (
	forP99  = 300
	forP999 = 3000
)

// bounds prints the table of what this project set itself.
func (r *Results) bounds(p func(string, ...any)) {
	if len(r.Pairs) == 0 {
		return
	}
	p("## Bounds\n\nThe benchmarks of this folder; the sides of each work in turns in one process, in %d processes at most. A bound is the least that is wanted;", r.Scale.Processes)
	p("where there is none the row is there to be known. The floor is what nothing on this machine could be faster than.\n")
	p("| work | lopen | p99 | beside | that took | ratio | lowest..highest | bound | | above the floor |\n|---|--:|--:|---|--:|--:|--:|--:|---|---|")
	for _, w := range r.Pairs {
		if w.Rounds == 0 {
			p("| %s | not measured | | %s | | | | | | |", w.Work, w.What)
			continue
		}
		unit, beside, took, ratio, low, high := "ns", "", "", "", number(w.Low), number(w.High)
		if w.counted() {
			unit = ""
		}
		bound, verdict, floor := amount(w.Bound, unit), "within", ""
		switch {
		case w.Other != "":
			beside, took, ratio, bound = w.What, amount(w.OtherP50, unit), number(w.Value), number(w.Bound)
		case !w.counted():
			low, high = amount(w.Low, unit), amount(w.High, unit)
			bound += ", p99 " + amount(w.Bound99, unit)
		}
		switch {
		case w.Bound == 0:
			bound, verdict = "", ""
		case !w.within():
			verdict = "**missed**"
		}
		if w.FromFloor > 0 {
			floor = number(w.FromFloor) + " x " + w.Below
		} else if w.isFloor() {
			floor = ratio + " x"
		}
		p("| %s | %s | %s | %s | %s | %s | %s..%s | %s | %s | %s |", w.Work, amount(w.P50, unit), some(w.P99), beside, took, ratio, low, high, bound, verdict, floor)
	}
	p("")
}

// some is a time, nothing if there is none.
func some(ns float64) string {
	if ns == 0 {
		return ""
	}
	return amount(ns, "ns")
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
	figures := " median | p99 | p99.9 | max | medians of rounds |"
	if single {
		figures = " " + t.Unit + " |"
		if t.PerByte > 0 {
			figures += " x changed |"
		}
	} else {
		ratio += " samples |"
	}
	p("| |%s%s what it promises |", figures, ratio)
	p("|---|%s---|", strings.Repeat("--:|", strings.Count(figures+ratio, "|")))
	for _, r := range t.Rows {
		ratio := ""
		if t.Base != "" {
			ratio = " " + number(r.Ratio) + " |"
		}
		a := func(v float64) string { return amount(v, t.Unit) }
		if single {
			figure := a(r.P50)
			if t.PerByte > 0 {
				figure += " | " + number(r.P50/t.PerByte)
			}
			p("| %s | %s |%s %s |", r.Name, figure, ratio, r.Durable)
			continue
		}
		p99, p999 := a(r.P99), a(r.P999)
		if r.N < forP99 {
			p99 = ""
		}
		if r.N < forP999 {
			p999 = ""
		}
		p("| %s | %s | %s | %s | %s | %s..%s |%s %d | %s |", r.Name, a(r.P50), p99, p999, a(r.Max), a(r.Low), a(r.High), ratio, r.N, r.Durable)
	}
	p("")
}

// amount is a figure for people.
func amount(v float64, unit string) string {
	switch unit {
	case "ns":
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
		return bytesOf(int(v + 0.5))
	}
	return number(v)
}

// bytesOf is a number of bytes for people.
func bytesOf(n int) string {
	switch v := float64(n); {
	case n >= 1<<20:
		return number(v/(1<<20)) + " MiB"
	case n >= 1<<10:
		return number(v/(1<<10)) + " KiB"
	}
	return thousands(n)
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
