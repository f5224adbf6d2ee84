package main

import (
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/writer"
)

// floor is one append and one fdatasync: of a message, or of as many bytes as a record of
// a change has.
type floor struct {
	dir    writer.FS
	f      writer.File
	record []byte
	off    int64
}

// recordBytes is about what this project writes for a step.
const recordBytes = 450

func openFloor(dir string, _ int) (Peer, error) {
	d, err := writer.OpenFS(dir)
	if err != nil {
		return nil, err
	}
	f, err := d.OpenFile("log", os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &floor{dir: d, f: f, record: make([]byte, recordBytes)}, d.SyncDir(".")
}

func (f *floor) write(p []byte) error {
	n, err := f.f.WriteAt(p, f.off)
	f.off += int64(n)
	if err != nil {
		return err
	}
	return f.f.Datasync()
}

func (f *floor) Save(workload.Step) error { return f.write(f.record) }
func (f *floor) Append(text string) error { return f.write([]byte(text)) }
func (f *floor) Sync() error              { return nil }

func (f *floor) Close() error {
	err := f.f.Close()
	if cerr := f.dir.Close(); err == nil {
		err = cerr
	}
	return err
}

// stateFile is where those that keep one file keep it.
func stateFile(dir string) string { return filepath.Join(dir, "state.json") }
