package main

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/natefinch/atomic"

	"github.com/lopen-dev/lopen/bench/workload"
)

// A document is a loop's state as most loops keep it: one value, marshalled whole.
type document struct {
	Tasks      []task      `json:"tasks"`
	Iterations []iteration `json:"iterations,omitempty"`
}

type task struct {
	ID       string `json:"id"`
	Parent   string `json:"parent"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Attempts int    `json:"attempts,omitempty"`
}

type iteration struct {
	InputTokens   int `json:"inputTokens"`
	OutputTokens  int `json:"outputTokens"`
	ContextWindow int `json:"contextWindow"`
	DurationMs    int `json:"durationMs"`
}

func taskOf(i, attempts int) task {
	return task{ID: workload.TaskID(i), Parent: workload.ComponentID(i), Name: workload.TaskName, State: "pending", Attempts: attempts}
}

func newDocument(n int) *document {
	d := &document{Tasks: make([]task, n)}
	for i := range d.Tasks {
		d.Tasks[i] = taskOf(i, 0)
	}
	return d
}

var oneIteration = iteration{InputTokens: 12_000, OutputTokens: 800, ContextWindow: 200_000, DurationMs: 40_000}

func (d *document) apply(s workload.Step) {
	d.Tasks[s.Task].Attempts = s.Attempts
	if s.Iteration {
		d.Iterations = append(d.Iterations, oneIteration)
	}
}

// whole writes the document at each save.
type whole struct {
	doc   *document
	path  string
	write func(path string, data []byte) error
}

func openWhole(write func(path string, data []byte) error) func(string, int) (Peer, error) {
	return func(dir string, n int) (Peer, error) {
		w := &whole{newDocument(n), stateFile(dir), write}
		return w, w.save()
	}
}

func (w *whole) save() error {
	data, err := json.Marshal(w.doc)
	if err != nil {
		return err
	}
	return w.write(w.path, data)
}

func (w *whole) Save(s workload.Step) error {
	w.doc.apply(s)
	return w.save()
}

func (w *whole) Sync() error  { return nil }
func (w *whole) Close() error { return nil }

var (
	openNatefinch = openWhole(func(path string, data []byte) error { return atomic.WriteFile(path, bytes.NewReader(data)) })
	openRename    = openWhole(writeRename)
)

// writeRename replaces a file without any fsync.
func writeRename(path string, data []byte) error {
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
