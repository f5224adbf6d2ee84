package blob

import (
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// Commit makes everything that was put durable. After an error some contents may be
// stored, whole, and the caller may put them again in another Batch. Commit ends the Batch.
func (b *Batch) Commit() error {
	b.h.mu.RLock()
	defer b.h.mu.RUnlock()
	defer b.Discard()
	if err := b.usable(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = b.commit()
	return b.err
}

// commit is Commit. The caller holds mu.
func (b *Batch) commit() error {
	s := b.h.s
	if err := b.endPack(); err != nil {
		return writer.NewError(opPut, s.dir.Name(), writer.NotCommitted, err)
	}
	if b.sync(); b.err != nil {
		return b.err
	}
	if err := s.makeFolders(b.folders[:]); err != nil {
		return err
	}
	var packs []*pack
	for len(b.synced) > 0 {
		t := b.synced[0]
		b.synced = b.synced[1:]
		if err := s.rename(t); err != nil {
			return err
		}
		if t.pack != nil {
			packs = append(packs, t.pack)
		}
	}
	there, _ := s.listed()
	if err := s.syncFolders(b.folders[:]); err != nil {
		return err
	}
	if b.folders[packsFolder] {
		s.settle(there, packs)
	}
	return nil
}

// Discard ends the Batch and removes the files that are not committed. It is idempotent;
// after Commit it does nothing.
func (b *Batch) Discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	if b.packing != nil {
		b.packing.discard()
	}
	for _, u := range b.unsynced {
		discard(b.h.s.dir, u.name, u.f)
	}
	for _, t := range b.synced {
		_ = b.h.s.dir.Remove(t.name)
	}
	b.packing, b.unsynced, b.synced = nil, nil, nil
}

// makeFolders makes folders, and makes their names durable with one sync of the store's
// folder. Each Store does this once for an existing folder too, because its creator may not
// have synced the name. After a failed sync makeFolders removes the folders that it made, so
// that the next call makes them again: a second sync would report success for a name that is
// not on the disk.
func (s *Store) makeFolders(need []bool) error {
	var doubtful, made []folder
	undo := func(f folder, err error) error {
		for _, m := range made {
			_ = s.dir.Remove(m.name())
		}
		return writer.NewError("make folder", s.path(f.name()), writer.NotCommitted, err)
	}
	for i, needed := range need {
		f := folder(i)
		if !needed || s.folders[f].durable.Load() {
			continue
		}
		doubtful = append(doubtful, f)
		err := writer.Retry(func() error { return s.dir.Mkdir(f.name(), 0o700) })
		if err == nil {
			made = append(made, f)
			continue
		}
		if errors.Is(err, fs.ErrExist) {
			var info fs.FileInfo
			if info, err = s.dir.Lstat(f.name()); err == nil && !info.IsDir() {
				err = &writer.Error{Class: writer.ClassInvalid, Err: errors.New("something that is no folder has this name; move it away")}
			}
		}
		if err != nil {
			return undo(f, err)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	if err := s.dir.SyncDir("."); err != nil {
		return undo(doubtful[0], err)
	}
	for _, f := range doubtful {
		s.folders[f].durable.Store(true)
	}
	return nil
}

// syncFolders syncs folders concurrently.
func (s *Store) syncFolders(need []bool) error {
	var g errgroup.Group
	g.SetLimit(syncers)
	for f, needed := range need {
		if needed {
			g.Go(func() error { return s.syncFolder(folder(f)) })
		}
	}
	return g.Wait()
}

func (s *Store) syncFolder(f folder) error {
	if err := s.dir.SyncDir(f.name()); err != nil {
		s.folders[f].suspect.Store(true)
		return writer.NewError(opPut, s.path(f.name()), writer.NotDurable, err)
	}
	return nil
}

// settle records that the packs' folder was synced after the packs there were listed and the
// packs made were renamed.
func (s *Store) settle(there, made []*pack) {
	for _, p := range there {
		if !s.folders[packsFolder].suspect.Load() {
			p.durable.Store(true)
		}
	}
	for _, p := range made {
		s.add(p)
	}
}

// rename gives a complete temporary file its name. After a failed rename it looks for the
// content under that name: the rename may have been carried out when a network server's
// answer got lost, or another Batch may have stored the same content.
func (s *Store) rename(t temp) error {
	to, f := t.hash.file(t.codec), t.hash.folder()
	stands := func() error { return s.verifyLoose(opPut, t.hash, anySize, nil) }
	if t.pack != nil {
		to, f = t.pack.path(), packsFolder
		stands = func() error { // the name is random, so no other writer uses it
			_, err := s.dir.Lstat(to)
			return err
		}
	}
	err := writer.Retry(func() error { return s.dir.Rename(t.name, to) })
	if err == nil {
		return nil
	}
	state := &s.folders[f]
	state.durable.Store(false) // the folder may have been removed
	there := s.dir.Remove(t.name) == nil
	outcome := writer.OutcomeUnknown
	switch serr := stands(); {
	case serr == nil && (t.pack != nil || !state.suspect.Load()):
		return nil
	case serr == nil:
		outcome = writer.NotDurable // a sync of this folder failed before
	case there, errors.Is(serr, fs.ErrNotExist), errors.Is(serr, envelope.ErrCorrupt), errors.Is(serr, writer.ErrInvalid):
		outcome = writer.NotCommitted
	}
	if t.pack != nil {
		return writer.NewError(opPut, s.path(to), outcome, err)
	}
	return s.failed(opPut, t.hash, outcome, err)
}
