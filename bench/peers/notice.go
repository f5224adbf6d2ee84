package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The part of a readme between these lines is written here.
const (
	readmeBegin = "<!-- written by make bench: begin -->"
	readmeEnd   = "<!-- written by make bench: end -->"
)

// chosen are the contenders that the table of what people notice names beside this
// project, where all of them were measured.
var chosen = []string{Ours, "SQLite FULL", "bbolt", "renameio", "model: rename"}

func (r *Results) peopleNote() string {
	h := r.Scale.Home
	return fmt.Sprintf("A plan of %d tasks, a project of %s files, %d sessions, one of them with %s of messages. Medians, and the 99th percentile where there\nare %d samples. %s",
		usual, thousands(h.Files), h.Sessions, bytesOf(h.Bytes), forP99, r.Machine.short())
}

// short is a machine in a line.
func (m Machine) short() string {
	quick := ""
	if m.Quick {
		quick = "; a quick run, with few samples"
	}
	return fmt.Sprintf("%s, %d CPUs, %s, %s, %s%s.", m.CPU, m.CPUs, m.FileSystem, m.Go, m.At.Format("2 January 2006"), quick)
}

// people prints a row for each piece of work that people notice.
func (r *Results) people(p func(string, ...any)) {
	p("| | lopen | beside |\n|---|---|---|")
	for _, t := range r.Tables {
		if t.People == "" {
			continue
		}
		ours, others := "", []string(nil)
		for _, row := range t.Rows {
			if len(t.Rows) > len(chosen) && !slices.Contains(chosen, row.Name) {
				continue
			}
			if row.Name == Ours {
				ours = row.noticed("")
			} else {
				others = append(others, row.noticed(row.Name+": "))
			}
		}
		p("| %s | %s | %s |", t.People, ours, strings.Join(others, "<br>"))
	}
	p("")
}

// noticed is a row in a few words. What it promises is part of it.
func (r Row) noticed(name string) string {
	s := name + "**" + amount(r.P50, "ns") + "**"
	if r.N >= forP99 {
		s += ", p99 " + amount(r.P99, "ns")
	}
	if r.Durable != "" {
		s += "; " + strings.ReplaceAll(r.Durable, "**", "")
	}
	return s
}

// intoReadme replaces what stands between the marks.
func (r *Results) intoReadme(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(data, []byte(readmeBegin))
	_, after, too := bytes.Cut(rest, []byte(readmeEnd))
	if !ok || !too {
		return fmt.Errorf("write into %s: the lines %s and %s are not there", name, readmeBegin, readmeEnd)
	}
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	b.Write(before)
	p("%s\n%s\n", readmeBegin, r.peopleNote())
	r.people(p)
	p("%s", readmeEnd)
	b.Write(bytes.TrimPrefix(after, []byte("\n")))
	return os.WriteFile(filepath.Clean(name), b.Bytes(), 0o644)
}
