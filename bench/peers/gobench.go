package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// A Pair compares two benchmarks of ../*_test.go that ran in the same process.
type Pair struct {
	Work  string
	Ours  string // the benchmark's name
	Other string // what it is divided by; "" for a bound of its own
	What  string // what Other is
	Unit  string
	Bound float64 // of the ratio, or of the figure where there is no Other
}

var pairs = []Pair{
	{"Save back to back, 10 tasks", "Save/tasks=10", "", "", "ns/op", 100},
	{"Save back to back, 100,000 tasks", "Save/tasks=100000", "", "", "ns/op", 100},
	{"Allocations of a Save", "Save/tasks=1000", "", "", "allocs/op", 1},
	{"Save at 200 a second, median", "Paced/lopen", "Paced/send", "bare send to a goroutine that sleeps", "p50-ns", 1.5},
	{"Burst of 10,000 triggers, last one until durable", "Burst/triggers=10000", "Burst/floor", "append and fdatasync of as many bytes", "ns/op", 2.5},
	{"Save and Sync, 1,000,000 tasks", "Durable/tasks=1000000", "Durable/tasks=10", "the same with 10 tasks", "ns/op", 2},
	{"Resume, 1,000 tasks", "Resume/tasks=1000", "Resume/tasks=1000/json", "encoding/json alone", "ns/op", 0.5},
	{"Resume, 100,000 tasks", "Resume/tasks=100000", "Resume/tasks=100000/json", "encoding/json alone", "ns/op", 0.5},
	{"List of 10,000 sessions", "List/sessions=10000", "List/floor", "serial open, read of 1 KiB and close of each", "ns/op", 1},
	{"10,000 files, nothing changed", "FilesUnchanged/lopen", "FilesUnchanged/git", "git status", "ns/op", 0.8},
	{"Checkpoint of 10,000 files, 10 changed, durable", "Checkpoint/create", "Checkpoint/git", "git add -A && git write-tree, core.fsync=all", "ns/op", 1},
	{"SHA-256 of 10,000 files", "Hash/lopen", "Hash/sha256sum", "find -exec sha256sum", "ns/op", 1},
	{"A section of 200, file not seen before", "Sections/lopen", "Sections/goldmark", "the goldmark parser alone", "ns/op", 2},
	{"Heap of 1,000 live idle sessions", "Idle", "", "", "heap-MiB", 20},
	{"Descriptors of a live idle session", "Idle", "", "", "descriptors/session", 3},
}

// A PairRow is what came of a Pair.
type PairRow struct {
	Pair
	N           int
	Figure      float64 // median of the rounds
	OtherFigure float64 `json:",omitempty"`
	Value       float64 // the median of the rounds' ratios, or the figure
	Low, High   float64 // of the rounds
}

// goBenchmarks runs the benchmarks of the folder above, one process a round.
func (b *bench) goBenchmarks(folder string) ([]PairRow, error) {
	b.say("Go benchmarks")
	program := filepath.Join(b.dir, "bench.test")
	if out, err := b.run(folder, "go", "test", "-c", "-o", program, "."); err != nil {
		return nil, fmt.Errorf("build benchmarks: %w: %s", err, out)
	}
	defer os.Remove(program)
	var rounds []map[string]float64
	for range b.Processes {
		out, err := b.run(folder, program, "-test.run", "^$", "-test.bench", b.Bench, "-test.benchmem", "-test.benchtime", b.Benchtime)
		if err != nil {
			return nil, fmt.Errorf("run benchmarks: %w: %s", err, out)
		}
		rounds = append(rounds, figures(out))
	}
	return pair(rounds), nil
}

func (b *bench) run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	return cmd.CombinedOutput()
}

// figures are those that a run of benchmarks printed, by name and unit.
func figures(out []byte) map[string]float64 {
	all := map[string]float64{}
	for r := benchfmt.NewReader(bytes.NewReader(out), "benchmarks"); r.Scan(); {
		res, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name := string(res.Name.Full())
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of processors
		}
		for _, v := range res.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" {
				value, unit = v.OrigValue, v.OrigUnit
			}
			all[name+" "+unit] = value
		}
	}
	return all
}

// pair divides what was measured in the same round. What is missing has no row.
func pair(rounds []map[string]float64) (rows []PairRow) {
	for _, p := range pairs {
		var ours, others, values []float64
		for _, r := range rounds {
			have, ok := r[p.Ours+" "+p.Unit]
			other, too := r[p.Other+" "+p.Unit]
			switch {
			case ok && p.Other == "":
				ours, values = append(ours, have), append(values, have)
			case ok && too:
				ours, others, values = append(ours, have), append(others, other), append(values, have/other)
			}
		}
		if len(values) == 0 {
			continue
		}
		row := PairRow{Pair: p, N: len(values), Figure: quantile(ours, 0.5), Value: quantile(values, 0.5), Low: quantile(values, 0), High: quantile(values, 1)}
		if p.Other != "" {
			row.OtherFigure = quantile(others, 0.5)
		}
		rows = append(rows, row)
	}
	return rows
}
