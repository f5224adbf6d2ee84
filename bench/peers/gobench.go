package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// A Pair is what one benchmark of ../*_test.go says of a piece of work. Its sides work
// in turns.
type Pair struct {
	Work    string
	Bench   string
	Ours    string  // the side of this project; of a count, its unit
	Other   string  // the side it is divided by, "" for a bound of its own
	What    string  // what Other is
	Floor   string  // the side that nothing can be faster than; "" where that is Other, or nothing
	Below   string  // what Floor is
	Bound   float64 // of the ratio; in ns, or a count, where there is no Other; 0 for none
	Bound99 float64 // of the 99th percentile in ns; 0 for none
}

const (
	appendSync = "append and fdatasync of as many bytes"
	send       = "a send to a goroutine"
	statEach   = "a stat of each, one after the other"
)

// pairs are the rows of the table of bounds.
var pairs = []Pair{
	{Work: "Save back to back, disk idle, 10 tasks", Bench: "Save/idle", Ours: "tasks=10", Floor: "send", Below: send, Bound: 100, Bound99: 500},
	{Work: "Save back to back, disk idle, 1,000,000 tasks", Bench: "Save/idle", Ours: "tasks=1000000", Floor: "send", Below: send, Bound: 100, Bound99: 500},
	{Work: "Save back to back, a commit takes 50 ms, 10 tasks", Bench: "Save/slow", Ours: "tasks=10", Bound: 100, Bound99: 500},
	{Work: "Save back to back, a commit takes 50 ms, 1,000,000 tasks", Bench: "Save/slow", Ours: "tasks=1000000", Bound: 100, Bound99: 500},
	{Work: "Save back to back, a commit hangs, 10 tasks", Bench: "Save/stalled", Ours: "tasks=10", Bound: 100, Bound99: 500},
	{Work: "Save back to back, a commit hangs, 1,000,000 tasks", Bench: "Save/stalled", Ours: "tasks=1000000", Bound: 100, Bound99: 500},
	{Work: "Allocations of a Save", Bench: "Save/allocs", Ours: "allocs/op", Bound: 1},
	{Work: "Save at 200 a second (writer asleep)", Bench: "Paced", Ours: "lopen", Other: "send", What: "bare send to a goroutine that sleeps", Bound: 1.5},
	{Work: "More commits for 10,000 triggers while one is held back", Bench: "Held", Ours: "more-commits", Bound: 1},
	{Work: "Burst of 10,000 triggers, last one until durable", Bench: "Burst", Ours: "lopen", Other: "append", What: appendSync, Bound: 2.5},
	{Work: "Save and Sync, 1,000,000 tasks", Bench: "Durable", Ours: "tasks=1000000", Other: "tasks=10", What: "the same with 10 tasks", Floor: "append", Below: appendSync, Bound: 2},
	{Work: "Save and Sync by itself, plan of 40 tasks", Bench: "Steady/alone", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.2},
	{Work: "The same once a second", Bench: "Steady/rate=1", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.2},
	{Work: "The same 20 times a second", Bench: "Steady/rate=20", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.2},
	{Work: "The same 200 times a second", Bench: "Steady/rate=200", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.2},
	{Work: "Fsyncs of a Save and Sync, once a second", Bench: "Fsyncs/rate=1", Ours: "fsyncs/save"},
	{Work: "Fsyncs of a Save and Sync, 20 times a second", Bench: "Fsyncs/rate=20", Ours: "fsyncs/save"},
	{Work: "Fsyncs of a Save and Sync, 200 times a second", Bench: "Fsyncs/rate=200", Ours: "fsyncs/save", Bound: 1.05},
	{Work: "Longest Save beside a commit of 1,000,000 tasks, ms", Bench: "LargeCommit", Ours: "longest-ms", Bound: 1},
	{Work: "Message of 200 bytes until durable", Bench: "Message/bytes=200", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.3},
	{Work: "Message of 4 KiB until durable", Bench: "Message/bytes=4096", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.3},
	{Work: "Message of 64 KiB until durable", Bench: "Message/bytes=65536", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.3},
	{Work: "1,000 messages of 200 bytes as fast as they come, until the last one is durable", Bench: "Messages/bytes=200", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.5},
	{Work: "The same from the last one on", Bench: "Messages/bytes=200", Ours: "last", Other: "append", What: appendSync},
	{Work: "1,000 messages of 4 KiB as fast as they come, until the last one is durable", Bench: "Messages/bytes=4096", Ours: "lopen", Other: "append", What: appendSync, Bound: 1.5},
	{Work: "The same from the last one on", Bench: "Messages/bytes=4096", Ours: "last", Other: "append", What: appendSync},
	{Work: "Resume, 1,000 tasks", Bench: "Resume/tasks=1000", Ours: "lopen", Other: "json", What: "encoding/json alone", Floor: "copy", Below: "a copy of the bytes", Bound: 0.5},
	{Work: "Resume, 100,000 tasks", Bench: "Resume/tasks=100000", Ours: "lopen", Other: "json", What: "encoding/json alone", Floor: "copy", Below: "a copy of the bytes", Bound: 0.35},
	{Work: "List of 10,000 sessions", Bench: "List", Ours: "lopen", Other: "read", What: "serial open, read of 1 KiB and close of each", Bound: 1},
	{Work: "10,000 files, nothing changed", Bench: "FilesUnchanged", Ours: "lopen", Other: "git", What: "`git status`", Floor: "stat", Below: statEach, Bound: 0.8},
	{Work: "The same, the snapshot before decoded as well", Bench: "FilesUnchanged", Ours: "load", Other: "git", What: "`git status`", Floor: "stat", Below: statEach},
	{Work: "Checkpoint of 10,000 files, 10 changed, durable", Bench: "Checkpoint", Ours: "lopen", Other: "git", What: "`git add -A && git write-tree`, core.fsync=all", Floor: "floor", Below: "a stat of each, one append and fdatasync", Bound: 0.5},
	{Work: "Checkpoint of 10,000 files, nothing changed, durable", Bench: "CheckpointUnchanged", Ours: "lopen", Other: "look", What: "the change detection alone", Bound: 1.15},
	{Work: "First checkpoint of 50,000 files, durable", Bench: "CheckpointFirst", Ours: "lopen", Other: "git", What: "`git add -A && git write-tree`, core.fsync=all", Bound: 0.15},
	{Work: "Difference of two checkpoints of 100,000 files, opened, 10 differ", Bench: "CheckpointDiff", Ours: "lopen-p50-ns", Bound: 10e6},
	{Work: "Most that a checkpoint of 10 changed files takes beside them, KiB", Bench: "CheckpointBytes", Ours: "KiB-most", Bound: 64},
	{Work: "200 checkpoints of 10,000 files beside the contents, MiB", Bench: "CheckpointBytes", Ours: "MiB-all", Bound: 20},
	{Work: "Memory for checkpoints of 100,000 files, MiB", Bench: "CheckpointMemory", Ours: "MiB", Bound: 200},
	{Work: "SHA-256 of 10,000 files", Bench: "Hash", Ours: "lopen", Other: "sha256sum", What: "`find -exec sha256sum`", Floor: "memory", Below: "the bytes hashed in memory, one core"},
	{Work: "Section of a file in memory", Bench: "Section", Ours: "hit", Other: "stat", What: "one bare stat", Bound: 1.5},
	{Work: "Section of a file not seen before", Bench: "Section", Ours: "miss", Other: "goldmark", What: "the goldmark parser alone on its bytes"},
	{Work: "Heap of 1,000 live idle sessions, MiB", Bench: "Idle", Ours: "heap-MiB", Bound: 20},
	{Work: "Descriptors of a live idle session", Bench: "Idle", Ours: "descriptors/session", Bound: 3},
	{Work: "1,000 sessions that save once a second: heap, MiB", Bench: "Busy/disk", Ours: "heap-MiB", Bound: 40},
	{Work: "The same: processor, percent of one", Bench: "Busy/disk", Ours: "cpu-%"},
	{Work: "The same: saves a second that it comes to", Bench: "Busy/disk", Ours: "saves/s"},
	{Work: "The same: fsyncs a second", Bench: "Busy/fsyncs", Ours: "fsyncs/s"},
}

// counted says that a Pair's figure is no time.
func (p Pair) counted() bool { return p.Other == "" && p.Bound99 == 0 }

// isFloor says that what a Pair is divided by is what nothing can be faster than.
func (p Pair) isFloor() bool {
	return p.Other == "append" || p.Other == "send" || p.Other == "stat" || p.Other == "read"
}

// A PairRow is what came of a Pair: medians of the rounds' medians and percentiles.
type PairRow struct {
	Pair
	Rounds    int
	P50       float64
	P99       float64 `json:",omitempty"` // 0 where there are too few samples
	OtherP50  float64 `json:",omitempty"`
	OtherP99  float64 `json:",omitempty"`
	Value     float64 // the median of the rounds' ratios, or P50
	Low, High float64 // of the rounds
	FromFloor float64 `json:",omitempty"` // the median of the rounds' ratios to the floor
}

// within says whether a row keeps its bounds.
func (r PairRow) within() bool { return r.Value <= r.Bound && (r.Bound99 == 0 || r.P99 <= r.Bound99) }

// goBenchmarks runs the benchmarks of the pairs in the folder above, one process a round.
func (b *bench) goBenchmarks(folder string) ([]PairRow, error) {
	program := filepath.Join(b.dir, "bench.test")
	if out, err := b.run(folder, "go", "test", "-c", "-o", program, "."); err != nil {
		return nil, fmt.Errorf("build benchmarks: %w: %s", err, out)
	}
	defer os.Remove(program)
	var names []string
	for _, p := range pairs {
		name, _, _ := strings.Cut(p.Bench, "/")
		names = append(names, name)
	}
	pattern := "^Benchmark(" + strings.Join(slices.Compact(names), "|") + ")$"
	var rounds []map[string]float64
	for range b.rounds(b.Processes) {
		out, err := b.run(folder, program, "-test.run", "^$", "-test.bench", pattern, "-test.benchmem", "-test.benchtime", b.Benchtime)
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

// pair divides what was measured in the same round. What is missing has no round.
func pair(rounds []map[string]float64) (rows []PairRow) {
	for _, p := range pairs {
		row := PairRow{Pair: p}
		of := func(side, stat string) (all []float64) {
			for _, r := range rounds {
				if v, ok := r[p.Bench+" "+side+stat]; ok {
					all = append(all, v)
				}
			}
			return all
		}
		ours, other := of(p.Ours, "-p50-ns"), of(p.Other, "-p50-ns")
		if p.counted() {
			ours = of(p.Ours, "")
		}
		values := ours
		if p.Other != "" {
			values = ratios(ours, other)
		}
		if len(values) == 0 {
			rows = append(rows, row)
			continue
		}
		row.Rounds, row.Value, row.Low, row.High = len(values), quantile(values, 0.5), quantile(values, 0), quantile(values, 1)
		row.P50, row.P99 = median(ours), median(of(p.Ours, "-p99-ns"))
		row.OtherP50, row.OtherP99 = median(other), median(of(p.Other, "-p99-ns"))
		if p.Floor != "" {
			row.FromFloor = median(ratios(ours, of(p.Floor, "-p50-ns")))
		}
		rows = append(rows, row)
	}
	return rows
}

// ratios divides pairwise; nothing where there are not as many of the other, or one is 0.
func ratios(ours, other []float64) (all []float64) {
	if len(ours) != len(other) || slices.Contains(other, 0) {
		return nil
	}
	for i := range ours {
		all = append(all, ours[i]/other[i])
	}
	return all
}

// median is 0 of nothing.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return quantile(all, 0.5)
}
