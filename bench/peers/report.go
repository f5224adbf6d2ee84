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
	var machine string
	for _, key := range slices.Sorted(maps.Keys(r.Machine)) {
		machine += "- " + key + ": " + r.Machine[key] + "\n"
	}
	s := fmt.Sprintf(`# Results

Written by make bench; do not edit. What is measured and how: [peers/doc.go](peers/doc.go).

%s
Figures of different machines do not compare; ratios do, roughly. Medians of %d rounds, each a process; the 99th percentile where there are samples enough.
Each row says how durable what it measured is: a figure that is not durable is no equal of one that is.

## What people notice

%s
## Bounds

The sides of each row, of which the bold one is lopen, work in turns in one process. A bound is the most that is wanted: of the ratio to the first other side, or of the figure
itself where there is no other or the bound is a time; where there is none the row is there to be known. The last side is what nothing on this
machine could be faster than, wherever there is such a thing.

%s
## Export, import and backup

A session of 100,000 messages with checkpoints of 1 GiB, uncompressed in its .lopen: half of it small files that do not compress, half of it large texts. (A quick run: 10,000 and 64 MiB.)
tar, restic and borg read the same folder; all are durable when they end. restic encrypts, borg and lopen do not; lopen does with --encrypt and a passphrase.
CPU time is of all processors; memory is the largest process's beyond that of lopen version; bytes are those that the file or the backup's folder grew by.
The second backup is made after 50 more messages, ten more files of 4 KiB, and a checkpoint.

%s`, machine, len(r.Rounds), r.noticed(), r.table(bounds...), r.table(carried...))
	for _, w := range figures {
		s += "\n## " + w.title + "\n\n" + w.note + "\n\n"
		w.title = "lopen"
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
		s += "\n" + w.people + ":\n\n"
		all := slices.DeleteFunc(r.figures(w), func(f figure) bool { return w.sides == nil && !slices.Contains(chosen, f.key) })
		if len(all) == 0 {
			s += "- not measured\n"
		}
		for _, f := range all {
			s += "- " + f.name + ": **" + w.amount(f.values...) + "**"
			if f.p99s != nil {
				s += ", p99 " + w.amount(f.p99s...)
			}
			if f.durable != "" {
				s += "; " + strings.ReplaceAll(f.durable, "**", "")
			}
			s += "\n"
		}
	}
	return s
}

// table has a line for each side of each row; the line of this project bears the title.
func (r *Results) table(rows ...row) string {
	s := "|  | median | p99 | of the rounds | lopen to it | bound | what it promises |\n| --- | ---: | ---: | ---: | ---: | --- | --- |\n"
	ratio := row{stat: "ratio"}
	for _, w := range rows {
		all := r.figures(w)
		if all == nil {
			s += "| not measured: " + w.title + " | | | | | | |\n"
		}
		for i, f := range all {
			name, spread, bound := f.name, "", ""
			if i == 0 {
				name, bound = "**"+w.title+"**", w.bound(all)
			}
			if len(f.values) > 1 {
				spread = w.amount(slices.Min(f.values)) + ".." + w.amount(slices.Max(f.values))
			}
			s += "| " + strings.Join([]string{name, w.amount(f.values...), w.amount(f.p99s...), spread, ratio.amount(f.ratios...), bound, f.durable}, " | ") + " |\n"
		}
		for _, k := range w.sides {
			if all != nil && !slices.ContainsFunc(all, func(f figure) bool { return f.key == k.key }) {
				s += "| not measured, as it was not found: " + k.name + " | | | | | | |\n"
			}
		}
	}
	return s
}

// A figure is what the rounds have of one side. A ratio is this project's to it in the
// same round.
type figure struct {
	kind
	values, p99s, ratios []float64
}

// figures are those of the sides of a row that were measured.
func (r *Results) figures(w row) (all []figure) {
	sides := w.sides
	if sides == nil {
		sides = contenders
	}
	for _, k := range sides {
		f := figure{kind: k}
		for _, round := range r.Rounds {
			get := func(k kind, stat string) (float64, bool) {
				v, ok := round[w.bench+" "+strings.TrimPrefix(k.key+"-"+stat, "-")]
				return v, ok
			}
			v, ok := get(k, w.unit())
			if !ok {
				continue
			}
			f.values = append(f.values, v)
			if p99, ok := get(k, "p99-ns"); ok && w.stat == "" {
				f.p99s = append(f.p99s, p99)
			}
			if ours, ok := get(sides[0], w.unit()); ok && v > 0 {
				f.ratios = append(f.ratios, ours/v)
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

// bound says what a row's bound is and whether it is kept.
func (w row) bound(all []figure) string {
	value, limit := median(all[0].values), w.amount(w.limit)
	switch {
	case w.limit == 0:
		return ""
	case w.limit99 > 0:
		limit += ", p99 " + w.amount(w.limit99)
	case len(all) > 1:
		value, limit = median(all[1].ratios), number(w.limit)
	}
	if value > w.limit || w.limit99 > 0 && median(all[0].p99s) > w.limit99 {
		return limit + ": **missed**"
	}
	return limit + ": kept"
}

// median is 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

func (w row) unit() string { return cmp.Or(w.stat, "p50-ns") }

// amount is the median of figures for people, "" of none.
func (w row) amount(values ...float64) string {
	v := median(values)
	switch {
	case values == nil:
		return ""
	case strings.HasSuffix(w.unit(), "-ns"):
		v, prefix := humanize.ComputeSI(v / 1e9)
		return number(v) + " " + prefix + "s"
	case w.stat == "bytes":
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
