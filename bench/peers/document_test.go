package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	renameio "github.com/google/renameio/v2/maybe"
	"github.com/natefinch/atomic"

	"github.com/lopen-dev/lopen/bench/workload"
)

// A document is a loop's state as most loops keep it: one value, marshalled whole.
type document struct {
	Tasks      []task
	Iterations []iteration `json:",omitempty"`
	Messages   []string    `json:",omitempty"`
}

type task struct {
	ID, Parent, Name, State string
	Attempts                int `json:",omitempty"`
}

type iteration struct{ InputTokens, OutputTokens, ContextWindow, DurationMs int }

var oneIteration = iteration{12_000, 800, 200_000, 40_000}

func taskOf(i, attempts int) task {
	return task{workload.TaskID(i), workload.ComponentID(i), workload.TaskName, "pending", attempts}
}

// whole writes the document at each save, and at each message.
type whole struct {
	document
	write func(data []byte) error
}

func newWhole(n int, write func(data []byte) error) *whole {
	w := &whole{write: write}
	for i := range n {
		w.Tasks = append(w.Tasks, taskOf(i, 0))
	}
	return w
}

func openWhole(write func(path string, data []byte) error) func(string, int) Peer {
	return func(dir string, n int) Peer {
		w := newWhole(n, func(data []byte) error { return write(stateFile(dir), data) })
		return must(w, w.save())
	}
}

// stateFile is where those that keep one file keep it.
func stateFile(dir string) string { return filepath.Join(dir, "state.json") }

func (w *whole) Sync() error  { return nil }
func (w *whole) Close() error { return nil }
func (w *whole) save() error  { return w.write(must(json.Marshal(w.document))) }

func (w *whole) Save(s workload.Step) error {
	w.Tasks[s.Task].Attempts = s.Attempts
	if s.Iteration {
		w.Iterations = append(w.Iterations, oneIteration)
	}
	return w.save()
}

func (w *whole) Append(text string) error {
	w.Messages = append(w.Messages, text)
	return w.save()
}

func writeRenameio(path string, data []byte) error { return renameio.WriteFile(path, data, 0o600) }
func writeNatefinch(path string, data []byte) error {
	return atomic.WriteFile(path, bytes.NewReader(data))
}

// writeCopy keeps a copy of the file as it is before it writes into it.
func writeCopy(path string, data []byte) error {
	if before, err := os.ReadFile(path); err == nil {
		if err := os.WriteFile(path+".bak", before, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(path, data, 0o600)
}

// writeRename replaces a file without any fsync.
func writeRename(path string, data []byte) error {
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// channel hands every state to one goroutine, which locks a file, replaces the state by a
// rename, and unlocks. The caller marshals: its document changes while a state waits.
type channel struct {
	*whole
	orders chan func() error
	done   chan error
}

func openChannel(dir string, n int) Peer {
	path, lock := stateFile(dir), flock.New(stateFile(dir)+".lock")
	c := &channel{orders: make(chan func() error, 256), done: make(chan error, 1)}
	c.whole = newWhole(n, func(data []byte) error {
		c.orders <- func() error { return errors.Join(lock.Lock(), writeRename(path, data), lock.Unlock()) }
		return nil
	})
	go func() {
		var all error
		for order := range c.orders {
			all = errors.Join(all, order())
		}
		c.done <- all
	}()
	return must(c, c.save())
}

func (c *channel) Sync() error {
	reached := make(chan struct{})
	c.orders <- func() error { close(reached); return nil }
	<-reached
	return nil
}

func (c *channel) Close() error {
	close(c.orders)
	return <-c.done
}
