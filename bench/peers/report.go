package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// inReadme is the part of a readme that is written here.
var inReadme = regexp.MustCompile("(?s)(<!-- written by make bench: begin -->\n).*(<!-- written by make bench: end -->)")

// write makes results.json and RESULTS.md in a folder, and the table of what people
// notice in a readme, if one is named.
func (r *Results) write(out, readme string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "results.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(r.page()), 0o644); err != nil || readme == "" {
		return err
	}
	page, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	if !inReadme.Match(page) {
		return fmt.Errorf("write into %s: it has no part %s", readme, inReadme)
	}
	return os.WriteFile(readme, inReadme.ReplaceAll(page, []byte("${1}"+r.noticed()+"${2}")), 0o644)
}

// page is RESULTS.md.
func (r *Results) page() string {
	var machine [][]string
	for _, key := range slices.Sorted(maps.Keys(r.Machine)) {
		machine = append(machine, []string{key, r.Machine[key]})
	}
	s := fmt.Sprintf(`# Results

Written by make bench; do not edit. What is measured and how: [peers/doc.go](peers/doc.go).

%s
Figures of different machines do not compare; ratios do, roughly. Medians of %d rounds, each a process; the 99th percentile where there are samples enough.
Each row says how durable what it measured is: a figure that is not durable is no equal of one that is.

## What people notice

%s
## Bounds

The sides of each row work in turns in one process. A bound is the most that is wanted: of the ratio to the first other side, or of the figure
itself where there is no other or the bound is a time; where there is none the row is there to be known. The last side is what nothing on this
machine could be faster than, wherever there is such a thing.

%s`, grid([]string{"", ""}, machine), len(r.Rounds), r.noticed(), r.summary(bounds))
	for _, w := range figures {
		s += "\n## " + w.title + "\n\n"
		if w.note != "" {
			s += w.note + "\n\n"
		}
		s += r.table(w)
	}
	return s
}

// noticed lists what people notice, a side a line: a readme's lines are short.
func (r *Results) noticed() string {
	s := fmt.Sprintf(`A plan of 40 tasks, a project of 5,000 files, 300 sessions, one of them with 20 MiB of messages.
Medians, and the 99th percentile where there are samples enough.
%s, %s, %s.
`, r.Machine["machine"], r.Machine["file system"], r.Machine["when"])
	for _, w := range slices.Concat(figures, people) {
		if w.people == "" {
			continue
		}
		sides := r.foremost(w)
		if s += "\n" + w.people + ":\n\n"; len(sides) == 0 {
			s += "- not measured\n"
		}
		for _, f := range sides {
			s += "- " + f.name + ": " + w.short(f) + "\n"
		}
	}
	return s
}

// grid is a table of Markdown. A column of which every cell is empty is left out; one
// whose name ends in ":" has figures.
func grid(names []string, rows [][]string) string {
	var b strings.Builder
	line := func(cell func(i int) string) {
		for i := range names {
			if slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
				b.WriteString("| " + cell(i) + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(func(i int) string { return strings.TrimSuffix(names[i], ":") })
	line(func(i int) string { return "---" + names[i][len(strings.TrimSuffix(names[i], ":")):] })
	for _, row := range rows {
		line(func(i int) string { return row[i] })
	}
	return b.String()
}

// A figure is what the rounds have of one side. A ratio is to this project in the
// same round.
type figure struct {
	kind
	values, p99s, ratios []float64
}

// figures are those of the sides of a row that were measured.
func (r *Results) figures(w row) (all []figure) {
	sides, stat := w.sides, "-"+cmp.Or(w.stat, "p50-ns")
	switch {
	case slices.ContainsFunc(figures, func(f row) bool { return f.bench == w.bench }):
		sides = contenders
	case sides == nil:
		sides, stat = []kind{{name: "lopen"}}, w.stat
	}
	for _, k := range sides {
		f := figure{kind: k}
		for _, round := range r.Rounds {
			v, ok := round[w.bench+" "+k.key+stat]
			if !ok {
				continue
			}
			f.values = append(f.values, v)
			if p99, ok := round[w.bench+" "+k.key+"-p99-ns"]; ok && w.stat == "" {
				f.p99s = append(f.p99s, p99)
			}
			if ours := round[w.bench+" "+sides[0].key+stat]; ours > 0 {
				f.ratios = append(f.ratios, v/ours)
			}
		}
		if w.saved {
			f.durable = cmp.Or(f.saved, f.durable)
		}
		if f.values != nil {
			all = append(all, f)
		}
	}
	return all
}

// table has a line for each side of a row.
func (r *Results) table(w row) string {
	var lines [][]string
	for _, f := range r.figures(w) {
		lines = append(lines, []string{f.name, w.amount(median(f.values)), w.some(f.p99s), w.spread(f.values), number(median(f.ratios)), f.durable})
	}
	return grid([]string{"", "median:", "p99:", "of the rounds:", "x lopen:", "what it promises"}, lines)
}

// summary has a line for each row.
func (r *Results) summary(rows []row) string {
	var lines [][]string
	for _, w := range rows {
		all, ours, others, ratios := r.foremost(w), "not measured", []string(nil), []string(nil)
		for i, f := range all {
			if i == 0 {
				ours = w.short(f)
				continue
			}
			others, ratios = append(others, f.name+": "+w.short(f)), append(ratios, number(1/median(f.ratios)))
		}
		limit, kept := w.kept(all)
		lines = append(lines, []string{cmp.Or(w.people, w.title), ours, strings.Join(others, "<br>"), strings.Join(ratios, "<br>"), limit, kept})
	}
	return grid([]string{"", "lopen", "others", "lopen to these:", "bound:", ""}, lines)
}

// foremost are the sides of a row; of many, those that are best known.
func (r *Results) foremost(w row) []figure {
	all := r.figures(w)
	if len(all) > len(chosen) {
		all = slices.DeleteFunc(all, func(f figure) bool { return !slices.Contains(chosen, f.key) })
	}
	return all
}

// short is a side in a few words.
func (w row) short(f figure) string {
	s := "**" + w.amount(median(f.values)) + "**"
	if f.p99s != nil {
		s += ", p99 " + w.some(f.p99s)
	}
	if f.durable != "" {
		s += "; " + strings.ReplaceAll(f.durable, "**", "")
	}
	return s
}

// kept says what a row's bound is and whether it is kept.
func (w row) kept(all []figure) (limit, verdict string) {
	if w.limit == 0 || len(all) == 0 {
		return "", ""
	}
	value, p99, limit := median(all[0].values), 0.0, w.amount(w.limit)
	if w.limit99 > 0 {
		p99 = median(all[0].p99s)
		limit += ", p99 " + w.amount(w.limit99)
	} else if len(all) > 1 {
		value, limit = 1/median(all[1].ratios), number(w.limit)
	}
	if value > w.limit || p99 > w.limit99 {
		return limit, "**missed**"
	}
	return limit, "kept"
}

// median is 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (w row) some(values []float64) string {
	if values == nil {
		return ""
	}
	return w.amount(median(values))
}

func (w row) spread(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return w.amount(slices.Min(values)) + ".." + w.amount(slices.Max(values))
}

// amount is a figure for people.
func (w row) amount(v float64) string {
	switch stat := cmp.Or(w.stat, "p50-ns"); {
	case strings.HasSuffix(stat, "-ns"):
		v, prefix := humanize.ComputeSI(v / 1e9)
		return number(v) + " " + prefix + "s"
	case stat == "bytes":
		return humanize.IBytes(uint64(v + 0.5))
	}
	return number(v)
}

// number has three digits that count.
func number(v float64) string {
	if v >= 100 && v < 1e15 {
		return humanize.Comma(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
