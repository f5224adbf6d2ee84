package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// faulty fails the calls that fails picks. It records what must not happen: a call on a
// file that a failure gave up, and an acknowledgement that no sync covers.
type faulty struct {
	writer.FS
	fails func(op string, k int) bool // k counts the calls of op from 1
	err   error
	short bool // a failing write writes half and returns no error

	mu      sync.Mutex
	calls   map[string]int // Guarded by mu.
	failed  int            // Guarded by mu.
	files   []*faultyFile  // Guarded by mu.
	made    []string       // Guarded by mu: every file that was created.
	nameDue bool           // Guarded by mu: a new name is not durable yet.
	bad     []string       // Guarded by mu: what must not happen.
}

type faultyFile struct {
	writer.File
	fs      *faulty
	name    string
	dirty   bool // Guarded by fs.mu.
	givenUp bool // Guarded by fs.mu.
}

// call counts a call and reports whether it fails. A failure gives up every open file.
func (d *faulty) call(op string, f *faultyFile) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[op]++
	if f != nil && f.givenUp && op != "close" {
		d.bad = append(d.bad, op+" of "+f.name+" after a failure")
	}
	if d.fails == nil || !d.fails(op, d.calls[op]) {
		return false
	}
	d.failed++
	for _, f := range d.files {
		f.givenUp = true
	}
	return true
}

// owes returns what is not durable, and what must not have happened.
func (d *faulty) owes() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		if f.dirty && !f.givenUp {
			all = append(all, f.name)
		}
	}
	if d.nameDue {
		all = append(all, "the folder")
	}
	return append(all, d.bad...)
}

func (d *faulty) total() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.calls {
		n += k
	}
	return n
}

func (d *faulty) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if flag&os.O_CREATE == 0 {
		return d.FS.OpenFile(name, flag, perm)
	}
	if d.call("open", nil) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: d.err}
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nameDue = true
	d.made = append(d.made, name)
	d.files = append(d.files, &faultyFile{File: f, fs: d, name: name})
	return d.files[len(d.files)-1], nil
}

func (d *faulty) Link(a, b string) error {
	if d.call("link", nil) {
		return &os.LinkError{Op: "link", Old: a, New: b, Err: d.err}
	}
	for _, f := range d.files {
		if f.name == a && f.dirty {
			d.bad = append(d.bad, "a link to "+a+" before its sync")
		}
	}
	d.nameDue = true
	return d.FS.Link(a, b)
}

func (d *faulty) SyncDir(name string) error {
	if d.call("syncdir", nil) {
		return &fs.PathError{Op: "fsync", Path: name, Err: d.err}
	}
	d.mu.Lock()
	d.nameDue = false
	d.mu.Unlock()
	return d.FS.SyncDir(name)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	failing := f.fs.call("write", f)
	f.fs.mu.Lock()
	f.dirty = true
	f.fs.mu.Unlock()
	if !failing {
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:len(p)/2], off)
	if err == nil && !f.fs.short {
		err = &fs.PathError{Op: "write", Path: f.name, Err: f.fs.err}
	}
	return n, err
}

func (f *faultyFile) sync(op string, fn func() error) error {
	if f.fs.call(op, f) {
		return &fs.PathError{Op: op, Path: f.name, Err: f.fs.err}
	}
	f.fs.mu.Lock()
	f.dirty = false
	f.fs.mu.Unlock()
	return fn()
}

func (f *faultyFile) Sync() error     { return f.sync("sync", f.File.Sync) }
func (f *faultyFile) Datasync() error { return f.sync("datasync", f.File.Datasync) }

func (f *faultyFile) Close() error {
	err := f.File.Close()
	if f.fs.call("close", f) {
		return &fs.PathError{Op: "close", Path: f.name, Err: f.fs.err}
	}
	return err
}

// life appends 12 records in batches of 1 and 2, in several segments. After a failed
// append it reopens the journal and, with retry, appends the same records again, else
// records with other bodies. It returns the acknowledged records.
func life(t *testing.T, dir *faulty, w *journal.Writer, retry bool) (acked []int) {
	t.Helper()
	last := w.Last()
	for i, n := 0, 1; i < 8; i++ {
		w.Limit = 1 << 20
		if i%3 == 2 {
			w.Limit = 1
		}
		batch := []journal.Record{body(n)}
		if i%2 == 1 {
			batch = append(batch, body(n+1))
		}
		for {
			at, err := w.Append(batch...)
			if err == nil {
				require.Empty(t, dir.owes(), "acknowledged")
				require.Equal(t, last.Seq+uint64(len(batch)), at.Seq)
				last = at
				for range batch {
					acked = append(acked, n)
					n++
				}
				break
			}
			if dir.short {
				require.ErrorIs(t, err, io.ErrShortWrite)
			} else {
				require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
			}
			require.Equal(t, last, at, "what is durable")
			require.Equal(t, last, w.Last())
			before := dir.total()
			for range 3 {
				_, again := w.Append(body(1000))
				require.Equal(t, err, again, "it stays")
			}
			require.Equal(t, before, dir.total(), "nothing is tried")
			for tries := 0; w.Reopen() != nil; tries++ {
				require.Less(t, tries, 9)
				before := dir.total()
				_, again := w.Append(body(1000))
				require.Error(t, again, "a Reopen that failed changes nothing")
				require.Equal(t, before, dir.total())
			}
			require.Empty(t, dir.owes(), "reopened")
			require.Equal(t, last, w.Last())
			if !retry {
				n += 100 // so that a failed record would be recognized
				for j := range batch {
					batch[j] = body(n + j)
				}
			}
		}
	}
	before := dir.total()
	require.NoError(t, w.Reopen(), "a whole one stays as it is")
	require.Equal(t, before, dir.total())
	return acked
}

// check reads the journal that a life left.
func check(t *testing.T, dir *faulty, acked []int) {
	t.Helper()
	log := read(t, dir, 0)
	require.Equal(t, acked, bodies(t, log, log.Records), "every acknowledged record, once and in order, and no other one")
	require.Zero(t, log.Lost)
	for _, f := range log.Faults {
		require.Equal(t, journal.Settled, f.Kind, f)
	}
	there := names(t, dir)
	for line := range bytes.Lines(content(t, dir, journal.ListFile)) {
		var h struct{ Epoch, Segment int }
		require.NoError(t, json.Unmarshal(line, &h))
		require.Contains(t, there, fmt.Sprintf("journal-%d-%d.jsonl", h.Epoch, h.Segment), "the list names what is there")
	}
	seen := map[string]bool{}
	for _, n := range dir.made {
		require.False(t, seen[n], "%s is used twice", n)
		seen[n] = true
	}
}

var ops = []string{"open", "write", "sync", "datasync", "syncdir", "close"}

func TestEveryFaultOfAWriter(t *testing.T) {
	t.Parallel()
	for _, op := range ops {
		for _, c := range []struct {
			name         string
			times        int
			short, retry bool
		}{{"once", 1, false, false}, {"once, tried again", 1, false, true}, {"for a while", 3, false, false}, {"short", 1, true, false}} {
			if c.short && op != "write" {
				continue
			}
			t.Run(op+" "+c.name, func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					dir := &faulty{FS: open(t), err: syscall.EIO, short: c.short}
					w, err := journal.Create(dir, id)
					require.NoError(t, err)
					require.Empty(t, dir.owes(), "created")
					begun := dir.calls[op]
					dir.fails = func(o string, n int) bool { return o == op && n >= begun+k && n < begun+k+c.times }
					acked := life(t, dir, w, c.retry)
					dir.fails = nil
					check(t, dir, acked)
					require.NoError(t, w.Close())
					if dir.failed == 0 {
						require.Greater(t, k, 1, "%s was never called", op)
						return
					}
				}
			})
		}
	}
}

func TestEveryFaultOfOpen(t *testing.T) {
	t.Parallel()
	for _, op := range append(ops, "link") {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				dir := &faulty{FS: open(t), err: syscall.EIO}
				create(t, dir, 5)
				begun := dir.calls[op]
				dir.fails = func(o string, n int) bool { return o == op && n == begun+k }
				log := read(t, dir, 2)
				w, err := journal.Open(dir, id, log)
				dir.fails = nil
				if err == nil && dir.failed > 0 {
					t.Fatalf("%s %d failed, and Open did not", op, k)
				}
				if err != nil {
					require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
					for _, n := range names(t, dir) {
						require.True(t, strings.HasPrefix(n, "journal-"), "%s is left", n)
					}
					got := read(t, dir, 2)
					require.Equal(t, count(3, 5), bodies(t, got, got.Above(2)))
					w = reopen(t, dir)
				}
				require.Empty(t, dir.owes(), "opened")
				add(t, w, 6, 7)
				require.NoError(t, w.Close())
				check(t, dir, count(1, 7))
				if dir.failed == 0 {
					require.True(t, k > 1 || op == "datasync" || op == "close", "%s was never called", op)
					return
				}
			}
		})
	}
}

func TestFaultOfCreate(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open", "write", "sync", "syncdir"} {
		dir := &faulty{FS: open(t), err: syscall.ENOSPC, fails: func(o string, _ int) bool { return o == op }}
		_, err := journal.Create(dir, id)
		require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err), "%s: %v", op, err)
	}
	dir := open(t)
	create(t, dir, 1)
	_, err := journal.Create(dir, id)
	require.ErrorIs(t, err, fs.ErrExist, "a journal is never begun twice")
	require.Equal(t, count(1, 1), bodies(t, read(t, dir, 0), read(t, dir, 0).Records))
}

// answerLost makes links whose answer says that they were there before, as a network server's does that was asked
// twice.
type answerLost struct{ writer.FS }

func (d answerLost) Link(from, to string) error {
	if err := d.FS.Link(from, to); err != nil {
		return err
	}
	return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EEXIST}
}

// noLinks refuses links, as some file systems do.
type noLinks struct{ writer.FS }

func (d noLinks) Link(from, to string) error {
	return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EPERM}
}

// The segment of an epoch is begun once, whatever the file system says to the link that names it.
func TestAnswersToALink(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(dir writer.FS) writer.FS{
		"lost":    func(dir writer.FS) writer.FS { return answerLost{dir} },
		"refused": func(dir writer.FS) writer.FS { return noLinks{dir} },
	} {
		dir := open(t)
		create(t, dir, 2)
		log := read(t, dir, 0)
		w, err := journal.Open(of(dir), id, log)
		require.NoError(t, err, name)
		_, err = w.Append(journal.Record{Body: []byte(`{"by":"the second"}`)})
		require.NoError(t, err, name)
		require.NoError(t, w.Close(), name)
		require.Len(t, read(t, dir, 0).Records, 3, name)
		temps, err := writer.Temps(dir, ".")
		require.NoError(t, err)
		require.Empty(t, temps, name)
		_, err = journal.Open(of(dir), id, log) // somebody else opened it since log was read
		require.Equal(t, writer.ClassFenced, writer.ClassOf(err), "%s: %v", name, err)
	}
}
