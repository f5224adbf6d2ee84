package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lopen-dev/lopen/writer/codec"
)

// A Library has the histories of one agent that were found.
type Library struct {
	Histories []History // the oldest first
	// Left are files and folders that could not be read, with the reason.
	Left []error

	databases []*database
}

// Open finds the histories of an agent in folders, and in all below them. A path may also be a
// history's file; then its subagents' files belong to it. A folder that does not exist is empty.
// It reads the first line of a file only if its name does not say whose it is. A database is copied
// into the folder temp first, and the copy is read. The caller closes the Library.
func Open(ctx context.Context, agent, temp string, paths ...string) (*Library, error) {
	switch agent {
	case Claude, Codex:
	case OpenCode:
		return openDatabases(ctx, temp, paths)
	default:
		return nil, unknown(agent)
	}
	f := finder{agent: agent, library: &Library{}, byID: map[string]*History{}, above: map[string]string{}}
	for _, path := range paths {
		if err := f.look(ctx, path); err != nil {
			return nil, fmt.Errorf("find histories of %s: %w", agent, err)
		}
	}
	f.join()
	for _, h := range f.byID {
		slices.SortFunc(h.files, func(a, b file) int {
			return cmp.Or(strings.Compare(a.thread, b.thread), strings.Compare(a.name, b.name))
		})
		h.Path = h.files[0].path
		f.library.Histories = append(f.library.Histories, *h)
	}
	slices.SortFunc(f.library.Histories, func(a, b History) int {
		return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.ID, b.ID))
	})
	return f.library, nil
}

// Close removes the copies that Open made. The histories cannot be read any more.
func (l *Library) Close() error {
	var errs []error
	for _, db := range l.databases {
		errs = append(errs, db.close())
	}
	l.databases = nil
	return errors.Join(errs...)
}

// finder collects files by the history that they belong to.
type finder struct {
	agent   string
	library *Library
	byID    map[string]*History
	above   map[string]string // the session that a subagent of Codex says it belongs to, by its own ID
}

func (f *finder) look(ctx context.Context, path string) error {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := os.Stat(resolved); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", path)
	}
	if f.agent == Claude && filepath.Ext(resolved) == transcript {
		if err := f.walk(ctx, filepath.Join(strings.TrimSuffix(resolved, transcript), subagents)); err != nil {
			return err
		}
	}
	return f.walk(ctx, resolved)
}

func (f *finder) walk(ctx context.Context, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile, or there are no subagents
			return nil
		case err != nil:
			f.library.Left = append(f.library.Left, err)
			return nil
		case d.IsDir() && d.Name() == storeFolder:
			return filepath.SkipDir
		case d.Type()&fs.ModeSymlink != 0 && f.leads(path):
			f.library.Left = append(f.library.Left, fmt.Errorf("%s: symbolic links are not followed: give it as PATH", path))
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		at := file{path: path, size: info.Size()}
		if given := path == from; f.agent == Claude {
			f.claude(at, info.ModTime(), given)
		} else {
			f.codex(at, info.ModTime(), given)
		}
		return nil
	})
}

const (
	// storeFolder has the sessions that lopen made, and none of an agent.
	storeFolder = ".lopen"

	transcript = ".jsonl"
	subagents  = "subagents"
	subagent   = "agent-"
	rollout    = "rollout-"
)

// claude takes {session}.jsonl, {session}/subagents/**/agent-*.jsonl, and agent-*.jsonl beside the
// sessions, where older versions left it. A file that was given by its path may have any name.
func (f *finder) claude(at file, modified time.Time, given bool) {
	dir, base := filepath.Split(at.path)
	if filepath.Ext(base) != transcript && !given {
		return
	}
	at.name = base
	id := strings.TrimSuffix(base, transcript)
	parts := strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")
	if i := slices.Index(parts, subagents); i > 0 {
		below := append(slices.Clone(parts[i+1:]), strings.TrimPrefix(id, subagent))
		at.thread = bounded(strings.Join(below, "/"))
		at.name = strings.Join(append(slices.Clone(parts[i:]), base), "/")
		id = parts[i-1]
	} else if strings.HasPrefix(base, subagent) {
		at.thread = bounded(strings.TrimPrefix(id, subagent))
		if id = sessionIn(at.path); id == "" {
			f.library.Left = append(f.library.Left, fmt.Errorf("%s: it does not say whose subagent it is", at.path))
			return
		}
	} else if !isUUID(id) { // a copy by another name
		if of := sessionIn(at.path); isUUID(of) {
			id, at.name = of, of+transcript
		}
	}
	f.add(id, at, modified)
}

// leads reports whether a symbolic link is to a folder, or has the name of a history.
func (f *finder) leads(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return true
	}
	name, _ := codec.Cut(path)
	return filepath.Ext(name) == transcript
}

// sessionIn returns the session that the first lines of a file of Claude Code name, or "".
func sessionIn(path string) (id string) {
	_ = headOf(path, func(l *headLine) bool {
		id = l.SessionID
		return id == ""
	}) // a file that cannot be read is reported when it is read
	return id
}

func isUUID(id string) bool { return len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil }

// codex takes rollout-*.jsonl, also compressed, and what begins like one. A subagent's says whose it is.
func (f *finder) codex(at file, modified time.Time, given bool) {
	name, packed := codec.Cut(filepath.Base(at.path))
	if !given && filepath.Ext(name) != transcript || packed != codec.None && packed != codec.Zstd {
		return
	}
	head, err := firstLine(at.path)
	if err == nil && !given && !strings.HasPrefix(name, rollout) && !head.beginsRollout() {
		return
	}
	if err != nil {
		f.library.Left = append(f.library.Left, err)
		return
	}
	id, session := head.own()
	if id == "" { // the name ends in the ID
		stem := strings.TrimSuffix(name, transcript)
		id = stem[max(len(stem)-len(uuid.Nil.String()), 0):]
	}
	at.name = id + transcript // as a copy by another name has it
	if session == "" {
		session = id
	}
	if session != id {
		at.thread = bounded(id)
		f.above[id] = session
	}
	f.add(session, at, modified)
}

// maxDepth bounds how deep subagents are below each other.
const maxDepth = 16

// join puts the files of subagents that name a subagent as their parent to those of its session.
func (f *finder) join() {
	for id, h := range f.byID {
		root := id
		for range maxDepth {
			if f.above[root] == "" {
				break
			}
			root = f.above[root]
		}
		if root == id || f.above[root] != "" {
			continue
		}
		for _, at := range h.files {
			f.add(root, at, h.Modified)
		}
		delete(f.byID, id)
	}
}

// left notes that of two files of a session the smaller one is not read.
func (f *finder) left(at, other file) {
	f.library.Left = append(f.library.Left, fmt.Errorf("%s: %s is of the same session, and larger", at.path, other.path))
}

func (f *finder) add(id string, at file, modified time.Time) {
	h := f.byID[id]
	if h == nil {
		h = &History{Agent: f.agent, ID: id}
		f.byID[id] = h
	}
	if i := slices.IndexFunc(h.files, func(o file) bool { return o.name == at.name }); i >= 0 {
		other := h.files[i]
		_, packed := codec.Cut(at.path)
		_, before := codec.Cut(other.path)
		switch plain := before == codec.None; {
		case other.path == at.path, plain && packed != codec.None: // it was found twice, or is a compressed copy
			return
		case plain && at.size <= other.size:
			f.left(at, other)
			return
		case plain:
			f.left(other, at)
		}
		h.Bytes -= other.size
		h.files = slices.Delete(h.files, i, i+1)
	}
	h.files = append(h.files, at)
	h.Bytes += at.size
	if modified.After(h.Modified) {
		h.Modified = modified
	}
}
