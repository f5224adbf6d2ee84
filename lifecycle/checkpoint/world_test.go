package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A world is a project on a simulated disk, the sessions that work in it, and people.
type world struct {
	t       require.TestingT
	disk    *crashfs.Disk
	outside []files.IgnoreFile
	alive   map[string]bool // sessions that somebody holds
	memory  files.Memory    // of the person whose processes all are
	clock   int

	checkpoints, blobs, tree, lopen *volume

	budget *files.Budget // nil is that of a new Store
}

// A volume is a folder of the disk that a world is on.
type volume struct{ writer.FS }

func newWorld(t require.TestingT) *world {
	w := &world{t: t, alive: map[string]bool{}, memory: files.Own(), checkpoints: &volume{}, blobs: &volume{}, tree: &volume{}, lopen: &volume{}}
	w.open(crashfs.New(crashfs.Ext4))
	return w
}

// open goes on with another disk.
func (w *world) open(disk *crashfs.Disk) {
	w.disk = disk
	for name, m := range map[string]*volume{"checkpoints": w.checkpoints, "blobs": w.blobs, "tree": w.tree, "lopen": w.lopen} {
		require.NoError(w.t, writer.MkdirDurable(disk.FS(), name))
		var err error
		m.FS, err = disk.FS().Sub(name)
		require.NoError(w.t, err)
	}
}

// edit makes changes by hand, durably: paths and contents in turn. "-" removes a path,
// "-> x" makes a symlink and "<- x" moves x there, "+x" makes a file executable, and a
// path that ends in / is a folder.
func (w *world) edit(contents ...string) {
	for i := 0; i < len(contents); i += 2 {
		require.NoError(w.t, w.change(contents[i], contents[i+1]), contents[i])
	}
}

func (w *world) change(name, content string) error {
	dir, isDir := strings.CutSuffix(name, "/")
	if isDir {
		return w.mkdir(dir)
	}
	if content == "-" {
		if err := w.tree.RemoveAll(name); err != nil {
			return err
		}
		return w.tree.SyncDir(path.Dir(name))
	}
	if err := w.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if from, ok := strings.CutPrefix(content, "<- "); ok {
		if err := w.tree.Rename(from, name); err != nil {
			return err
		}
		return errors.Join(w.tree.SyncDir(path.Dir(from)), w.tree.SyncDir(path.Dir(name)))
	}
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		return writer.ReplaceSymlink(w.tree, target, name)
	}
	perm := fs.FileMode(0o644)
	if strings.HasSuffix(content, "+x") {
		perm = 0o755
	}
	return writer.ReplaceFile(w.tree, name, []byte(content), perm)
}

// mkdir makes a folder and those above it.
func (w *world) mkdir(dir string) error {
	if dir == "." {
		return nil
	}
	if err := w.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if err := w.tree.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return w.tree.SyncDir(path.Dir(dir))
}

// look is all that stands in the tree: of folders the mode, of files with it the content.
func (w *world) look() map[string]string {
	all := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := w.tree.ReadDir(dir)
		require.NoError(w.t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := w.tree.Lstat(name)
			require.NoError(w.t, err)
			text := ""
			switch {
			case info.IsDir():
				walk(name)
			case info.Mode()&fs.ModeSymlink != 0:
				text, err = w.tree.Readlink(name)
			default:
				var data []byte
				data, err = writer.ReadFile(w.tree, name, 1<<20)
				text = string(data)
			}
			require.NoError(w.t, err)
			all[name] = info.Mode().String() + " " + text
		}
	}
	walk(".")
	return all
}

// damage damages a line of the chain.
func (w *world) damage(n int) {
	data, err := writer.ReadFile(w.checkpoints, "main.jsonl", 1<<20)
	require.NoError(w.t, err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[n][20]++
	require.NoError(w.t, writer.ReplaceFile(w.checkpoints, "main.jsonl", bytes.Join(lines, nil), 0o600))
}

// A worker is a session and the process that holds it.
type worker struct {
	*world
	id   string
	cps  *Store
	last uint64 // the entry that it last knew the files by
	task int
}

// worker begins a session. from is the entry of another session that it continues, or 0.
func (w *world) worker(id string, from uint64) *worker {
	k := &worker{world: w, id: id, last: from}
	k.start()
	return k
}

// start starts a new process of the session.
func (k *worker) start() {
	k.alive[k.id] = true
	k.cps = New(k.checkpoints, MainTree, blob.New(k.blobs), k.tree, Options{
		Memory:  k.memory,
		Alive:   func(id string) bool { return k.alive[id] },
		Outside: func(context.Context) []files.IgnoreFile { return k.outside },
		Repository: func(_ context.Context, path string) string {
			head, _ := writer.ReadFile(k.tree, path+"/.git/HEAD", 1<<10) // "" where it is not known
			return string(head)
		},
	})
	if k.lopen != nil && k.lopen.FS != nil {
		k.cps.opts.Lopen = k.lopen
	}
	if k.budget != nil {
		k.cps.budget = *k.budget
	}
}

func (k *worker) meta(why Reason, target uint64) Meta {
	k.clock++
	m := Meta{Session: k.id, Parent: k.last, At: time.Date(2026, 2, 14, 9, 0, k.clock, 0, time.UTC), Reason: why, Target: target}
	if why == BeforeTask || why == AfterTask {
		m.Task = fmt.Sprintf("t%d", k.task)
	}
	return m
}

func (k *worker) make(why Reason, target uint64) (*Entry, error) {
	e, err := k.cps.Create(context.Background(), k.meta(why, target))
	if err == nil {
		k.last = e.Number
	}
	return e, err
}

func (k *worker) create(why Reason, target uint64) *Entry {
	e, err := k.make(why, target)
	require.NoError(k.t, err)
	return e
}

// begin and end make the checkpoints before and after a task.
func (k *worker) begin() *Entry { k.task++; return k.create(BeforeTask, 0) }
func (k *worker) end() *Entry   { return k.create(AfterTask, 0) }

// works is a task alone.
func (k *worker) works(contents ...string) (before, after *Entry) {
	before = k.begin()
	k.edit(contents...)
	return before, k.end()
}

// preview is the plan of a rewind that is not made.
func (k *worker) preview(target *Entry, opts RewindOptions) *Plan {
	now, tree, err := k.cps.Look(context.Background(), k.meta(BeforeRewind, target.Number))
	require.NoError(k.t, err)
	plan, err := k.cps.Plan(context.Background(), target, now, tree, k.last, opts)
	require.NoError(k.t, err)
	return plan
}

// rewind goes back to the target. What the preview says is what is done.
func (k *worker) rewind(target *Entry, opts RewindOptions) (*Plan, *Entry) {
	first := k.preview(target, opts)
	last := k.last
	before := k.create(BeforeRewind, target.Number)
	plan, err := k.cps.Plan(context.Background(), target, before, k.cps.Tree(before.Root), last, opts)
	require.NoError(k.t, err)
	require.Equal(k.t, summary(first), summary(plan))
	done, err := k.cps.Apply(context.Background(), plan)
	require.NoError(k.t, err)
	require.Empty(k.t, done.Retained)
	require.Equal(k.t, len(plan.Changes), done.Changes)
	k.create(AfterRewind, target.Number)
	return plan, before
}

// said is what a plan says, a line a path.
func summary(p *Plan) []string {
	var lines []string
	for _, c := range p.Changes {
		lines = append(lines, fmt.Sprintf("%s: %s", c.Path, c.Kind))
	}
	for _, k := range p.Retained {
		line := fmt.Sprintf("%s: %s", k.Path, names[k.Why])
		if k.By != "" {
			line += ", " + k.By
			if k.At > 0 {
				line += fmt.Sprintf(", in %d", k.At)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

var names = map[Why]string{Foreign: "foreign", Contested: "contested", Ignored: "ignored", Uncovered: "uncovered", First: "first",
	Nested: "nested", Unknown: "unknown", Blocked: "blocked", Meanwhile: "meanwhile", Denied: "denied", Mounted: "mounted",
	Unstored: "unstored", Fixed: "fixed", Unsettled: "unsettled", Lost: "lost", Older: "older"}

// forget removes entries by their numbers, and what only they needed.
func (k *worker) forget(numbers ...uint64) {
	_, err := k.cps.Forget(context.Background(), "a test", func(e *Entry) bool { return slices.Contains(numbers, e.Number) })
	require.NoError(k.t, err)
}
