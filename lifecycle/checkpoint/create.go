package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// Create makes a checkpoint of the project's files, or of the paths that are named,
// and returns it when it is durable. base, which may be nil, is an earlier one: a
// file that is unchanged since costs one stat. The Skipped of its Files say what
// could not be kept. Only the holder of the session calls it.
//
// After an error there is no new checkpoint, but where the outcome is NotDurable:
// there it may be found.
func (s *Store) Create(ctx context.Context, meta Meta, base *Manifest, paths []string) (*Manifest, error) {
	if !meta.Reason.valid() {
		return nil, &writer.Error{Op: "create checkpoint", Path: s.dir.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("there is no reason %q", meta.Reason)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.clear(); err != nil {
		return nil, err
	}
	id, err := s.nextID()
	if err != nil {
		return nil, err
	}
	hold, err := s.blobs.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hold.Release() }() // what was stored is stored whatever it returns
	known, err := s.known(base)
	if err != nil {
		return nil, err
	}
	batch := hold.Batch()
	defer batch.Discard()
	snapshot, err := s.take(ctx, known, paths, func(_ context.Context, path string, r io.Reader) (blob.Hash, int64, error) {
		var stored blob.Hash
		if known != nil {
			if f := known.Find(path); f != nil && f.Mode.IsRegular() {
				stored = f.Hash
			}
		}
		return batch.Put(r, stored)
	})
	if err != nil {
		return nil, err
	}
	m := &Manifest{Header: Header{ID: id, Meta: meta, FilesModified: modified(known, snapshot)}, Files: snapshot, from: s}
	m.At = meta.At.UTC().Round(0)
	m.Blobs(func(_ blob.Hash, size int64) { m.Bytes += size })
	if err := checkFiles(m); err != nil { // or nobody could load it
		return nil, damaged(s.tree.Name(), err)
	}
	// The manifest is written beside its place while the blobs are synced.
	var both errgroup.Group
	var temp string
	both.Go(batch.Commit)
	both.Go(func() (err error) {
		temp, err = s.stage(m)
		return err
	})
	if err := both.Wait(); err != nil {
		if temp != "" {
			_ = s.dir.RemoveAll(temp)
		}
		return nil, err
	}
	if err := s.publish(temp, id.String()); err != nil {
		return nil, err
	}
	return m, nil
}

// Look is what the files are now, at the price of a stat for each that has not
// changed since base, which may be nil. Nothing is stored.
func (s *Store) Look(ctx context.Context, base *Manifest, paths []string) (*files.Snapshot, error) {
	var known *files.Snapshot
	if base != nil {
		known = base.Files
	}
	return s.take(ctx, known, paths, nil)
}

// known is the base as far as its contents are still stored. A manifest that
// stands in this folder is a root of every sweep; of any other each blob is looked
// for.
func (s *Store) known(base *Manifest) (*files.Snapshot, error) {
	if base == nil {
		return nil, nil
	}
	if base.from == s {
		_, err := s.dir.Lstat(base.ID.String() + "/" + manifestName)
		if err == nil {
			return base.Files, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, writer.NewError("look at checkpoint", s.path(base.ID.String()), writer.NotCommitted, err)
		}
	}
	there := map[blob.Hash]bool{}
	var kept []files.Fingerprint
	for _, f := range base.Files.Files {
		if f.Mode.IsRegular() {
			has, looked := there[f.Hash]
			if !looked {
				var err error
				if has, err = s.blobs.Has(f.Hash); err != nil {
					return nil, err
				}
				there[f.Hash] = has
			}
			if !has {
				continue
			}
		}
		kept = append(kept, f)
	}
	return &files.Snapshot{At: base.Files.At, Files: kept, Skipped: base.Files.Skipped, Paths: base.Files.Paths}, nil
}

type hashFunc func(ctx context.Context, path string, r io.Reader) (blob.Hash, int64, error)

func (s *Store) take(ctx context.Context, base *files.Snapshot, paths []string, hash hashFunc) (*files.Snapshot, error) {
	var mu sync.Mutex
	modes := map[string]fs.FileMode{}
	snapshot, err := files.Take(ctx, s.tree, base, files.Options{Paths: paths, Hash: hash, Folder: func(path string, mode fs.FileMode) {
		mu.Lock()
		modes[path] = mode
		mu.Unlock()
	}})
	if err != nil {
		return nil, err
	}
	return withFolders(snapshot, modes), nil
}

// withFolders adds an entry for each folder that something was recorded in, so
// that its mode is kept too.
func withFolders(snapshot *files.Snapshot, modes map[string]fs.FileMode) *files.Snapshot {
	seen := map[string]struct{}{}
	var folders []files.Fingerprint
	for i := range snapshot.Files {
		f := &snapshot.Files[i]
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, ok := seen[dir]; ok {
				break
			}
			seen[dir] = struct{}{}
			if mode, ok := modes[dir]; ok {
				folders = append(folders, files.Fingerprint{Path: dir, Mode: mode})
			}
		}
	}
	if len(folders) == 0 {
		return snapshot
	}
	byPath := func(a, b files.Fingerprint) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(folders, byPath)
	all := make([]files.Fingerprint, 0, len(snapshot.Files)+len(folders))
	for _, f := range snapshot.Files {
		for len(folders) > 0 && folders[0].Path < f.Path {
			all, folders = append(all, folders[0]), folders[1:]
		}
		all = append(all, f)
	}
	return &files.Snapshot{At: snapshot.At, Files: append(all, folders...), Skipped: snapshot.Skipped, Paths: snapshot.Paths}
}

// modeBits are those that a fingerprint has; specialBits are those that a checkpoint does
// not keep, and a rewind neither sets nor clears.
const (
	modeBits    = fs.ModeType | fs.ModePerm
	specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// modified counts the files that are not as the base has them, and those that it
// alone has.
func modified(base, now *files.Snapshot) int {
	if base == nil {
		base = &files.Snapshot{}
	}
	return len(Diff(base, now))
}

// stage makes a checkpoint's folder under a temporary name, with the manifest in it
// and durable but for that name.
func (s *Store) stage(m *Manifest) (temp string, err error) {
	data, err := m.Encode()
	if err != nil {
		return "", err
	}
	temp = writer.TempName(m.ID.String())
	if err := writer.Retry(func() error { return s.dir.Mkdir(temp, 0o700) }); err != nil {
		return temp, writer.NewError("create checkpoint", s.path(temp), writer.NotCommitted, err)
	}
	return temp, notCommitted(writer.ReplaceFile(s.dir, temp+"/"+manifestName, data, filePerm))
}

// notCommitted says of an error that there is no checkpoint, whatever it said of
// the file.
func notCommitted(err error) error {
	var e *writer.Error
	if errors.As(err, &e) {
		e.Outcome = writer.NotCommitted
	}
	return err
}

// publish makes the folder appear, durably.
func (s *Store) publish(temp, final string) error {
	if err := writer.Retry(func() error { return s.dir.Rename(temp, final) }); err != nil {
		outcome := writer.NotCommitted
		if _, lerr := s.dir.Lstat(temp); lerr != nil { // a network server's answer got lost
			outcome = writer.NotDurable
		} else {
			_ = s.dir.RemoveAll(temp)
		}
		return writer.NewError("create checkpoint", s.path(final), outcome, err)
	}
	if err := s.dir.SyncDir("."); err != nil {
		return writer.NewError("create checkpoint", s.path(final), writer.NotDurable, err)
	}
	return nil
}
