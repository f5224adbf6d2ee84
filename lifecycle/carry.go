package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/mount"
)

// Export exports sessions, or with All every session that can be read, to what open returns;
// see [carry.Export]. It takes no lock but that of the checkpoints' contents, which it shares
// with whoever makes a checkpoint. A [*DamagedError] says that a session cannot be exported.
func (s *Store) Export(ctx context.Context, o carry.ExportOptions, open func(bundle.Header) (carry.Sink, error)) (*carry.Exported, error) {
	if open == nil || ctx == nil {
		return nil, absent("export", s.Path(), "function or context")
	}
	o.Sessions = slices.Clone(o.Sessions)
	if o.All {
		infos, err := s.List()
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			o.Sessions = append(o.Sessions, i.ID)
		}
	}
	slices.SortFunc(o.Sessions, session.ID.Compare)
	o.Sessions = slices.Compact(o.Sessions)
	if o.Backup {
		kept, err := s.kept()
		if err != nil {
			return nil, err
		}
		o.Kept, o.Aside = kept, s.aside
	}
	if len(o.Sessions)+len(o.Kept) == 0 {
		return nil, fmt.Errorf("export: no session here yet: %w", ErrNotFound)
	}
	o.Now = s.opts.Now()
	o.Git = s.git(ctx, nil)
	if o.NoMessages || o.Redact != nil {
		scratch, remove, err := scratchFolder()
		if err != nil {
			return nil, err
		}
		defer remove()
		o.Scratch = scratch
	}
	from := carry.Store{Project: s.project, Root: s.root(), Busy: s.busy, Memory: s.opts.Memory, Outside: func(ctx context.Context) []files.IgnoreFile { return s.outside(ctx, nil) }}
	out, err := carry.Export(ctx, from, o, open)
	if out != nil {
		for i := range out.Skipped {
			out.Skipped[i].Err = notExported(&out.Skipped[i])
		}
	}
	if x, ok := errors.AsType[*carry.Skipped](err); ok {
		err = notExported(x)
	}
	return out, err
}

// scratchFolder returns a new private folder among the system's temporary files, since a project
// that is exported need not be writable.
func scratchFolder() (dir writer.FS, remove func(), err error) {
	name, err := os.MkdirTemp("", "lopen-export-")
	if err == nil {
		dir, err = writer.OpenFS(name)
	}
	if err != nil {
		return nil, nil, writer.NewError("make folder", cmp.Or(name, os.TempDir()), writer.NotCommitted, err)
	}
	return dir, func() { _ = errors.Join(dir.Close(), mount.RemoveAll(name)) }, nil
}

// busy reports whether a session is held. When that is not known it counts as held.
func (s *Store) busy(id session.ID) bool {
	owner, err := s.Holder(id)
	return err != nil || owner != nil
}

func notExported(x *carry.Skipped) error {
	return fmt.Errorf("export session %s: %w", x.ID, damagedIn(x.ID, folder.Path(x.ID), x.Err))
}

// kept returns the paths of the session folders in the trash and in corrupted/.
func (s *Store) kept() (paths []string, err error) {
	for _, place := range []string{trashDir, corruptedDir} {
		all, err := s.folders(place)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			paths = append(paths, f.path)
		}
	}
	return paths, nil
}

// aside returns where a damaged session is in a backup, and the note on it.
func (s *Store) aside(x carry.Skipped) (to string, note []byte) {
	n := quarantineNote{Reason: x.Err.Error()}
	note, _ = n.encode(x.ID.String(), s.opts.Now()) // of strings and a time
	return corruptedDir + "/" + x.ID.String() + "-" + n.At.Format(asideTime), note
}

// backupFile has the notes about the newest backup of each folder.
const backupFile = "backup.json"

// maxBackupNotes is how many folders are remembered.
const maxBackupNotes = 16

// A BackupNote says which backup is the newest in a folder.
type BackupNote struct {
	Folder string    `json:"folder"`
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Key    string    `json:"key,omitempty"` // names the key; "" if it is not encrypted
}

type backupNotes struct {
	Backups []BackupNote `json:"backups"`
}

// Backups returns the note about the newest backup of each folder, the newest first. The error
// wraps ErrNotFound if none was ever made.
func (s *Store) Backups() ([]BackupNote, error) {
	var n backupNotes
	err := folder.ReadSmall(s.root(), backupFile, &n)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(n.Backups) == 0 {
		err = fmt.Errorf("no backup was made: %w", ErrNotFound)
	}
	return n.Backups, err
}

// NoteBackup notes a backup as the newest, durably, and keeps the notes of backups to other
// folders at the same time. Notes that cannot be read are lost.
func (s *Store) NoteBackup(ctx context.Context, n BackupNote) (err error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("note backup %d, which is whole: %w", n.Number, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := s.Backups()
	if err != nil {
		all = nil
	}
	all = slices.DeleteFunc(all, func(o BackupNote) bool { return o.Folder == n.Folder })
	all = append([]BackupNote{n}, all[:min(len(all), maxBackupNotes-1)]...)
	return folder.WriteSmall(s.root(), backupFile, backupNotes{all})
}

// Import brings the sessions of a bundle or a backup into the store, with their checkpoints and
// documents; see [carry.Receive] and [carry.Received.Place]. All of it is checked before
// anything is visible. A session whose ID is taken gets another one; one that is here already
// stays as it is. A crash leaves whole sessions or none. After an error in which a Report is
// returned as well, the sessions are here and a document is not.
func (s *Store) Import(ctx context.Context, from carry.Source) (_ *carry.Report, err error) {
	if err := s.layout(); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	release, err := (home{s}).Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	staging, err := carry.NewStaging(s.root(), writer.OwnerOf(os.Getpid(), s.opts.Command))
	release()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, staging.Remove()) }()
	var cps *Checkpoints
	defer func() {
		if cps != nil {
			_ = cps.Close() // what was stored is durable
		}
	}()
	r, err := carry.Receive(ctx, from, carry.Destination{Staging: staging, Project: s.project, Others: others, Blobs: func() (_ *blob.Store, _ *blob.Hold, err error) {
		if cps, err = s.makeCheckpoints(nil); err != nil {
			return nil, nil, err
		}
		hold, err := cps.blobs.Hold(ctx)
		return cps.blobs, hold, err
	}})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Place(ctx, home{s}); err != nil {
		if r.Close(); cps != nil {
			s.free() // contents that are stored by now
		}
		return nil, err
	}
	for _, a := range r.Sessions {
		if !a.Known {
			s.opts.Logger.Info().Str("session", a.ID).Str("was", a.Was).Str("from", r.From.Path).Uint64("seq", a.Seq).Msg("session imported")
		}
	}
	return &r.Report, r.Deliver(home{s})
}

// Copy makes a session of all that another one has, under an ID of its own, durably: its records, with
// messages and attempts, and its output. Nobody holds the other one. It keeps the incarnation, by which
// its checkpoints are found.
func (s *Store) Copy(ctx context.Context, id session.ID) (as session.ID, err error) {
	lock, err := s.lockCleared(ctx)
	if err != nil {
		return as, err
	}
	defer func() { _ = lock.Unlock() }()
	staging, err := carry.NewStaging(s.root(), writer.OwnerOf(os.Getpid(), s.opts.Command))
	if err != nil {
		return as, err
	}
	defer func() { err = errors.Join(err, staging.Remove()) }()
	err = s.withLease(sessionsDir, id, func(_ *writer.Lock, _ string) error {
		counters, err := s.loadCounters()
		if err != nil {
			return err
		}
		if as, err = counters.next(id.Module, s.opts.Now()); err != nil {
			return err
		}
		if err := s.saveCounters(counters); err != nil {
			return err
		}
		dir, err := s.sessionDir(id)
		if err != nil {
			return err
		}
		defer dir.Close()
		path, err := staging.Copy(dir, id, as)
		if err != nil {
			return fmt.Errorf("copy session %s as %s: %w", id, as, err)
		}
		return s.move(path, folder.Path(as))
	})
	if err == nil {
		s.refreshLatest()
		s.Logger(as).Info().Str("of", id.String()).Msg("session copied")
	}
	return as, err
}

// VerifyBundle checks all that Import checks, in a temporary folder, and changes nothing.
func VerifyBundle(ctx context.Context, from carry.Source, temp string) (*carry.Report, error) {
	if from == nil || ctx == nil {
		return nil, absent("verify bundle", temp, "source or context")
	}
	return carry.Verify(ctx, from, temp, others)
}

// A home implements [carry.Home].
type home struct{ *Store }

func (h home) Root() writer.FS { return h.root() }

func (h home) Lock(ctx context.Context) (func(), error) {
	lock, err := h.lockCleared(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		h.refreshLatest()
		_ = lock.Unlock()
	}, nil
}

func (h home) Settle(claims []carry.Claim) error {
	infos, err := h.List()
	if err != nil {
		return err
	}
	taken := map[session.ID]bool{}
	for _, place := range []string{sessionsDir, trashDir, corruptedDir} {
		all, err := h.folders(place)
		if err != nil {
			return err
		}
		for _, f := range all {
			taken[f.id] = true
		}
	}
	counters, err := h.loadCounters()
	if err != nil {
		return err
	}
	var others []*carry.Claim // those whose ID is taken
	fresh := 0
	for i := range claims {
		c := &claims[i]
		if c.Over {
			c.As = c.ID
			counters.reserve(c.ID)
			fresh++
			continue
		}
		if c.As, c.Here = h.holding(infos, c); c.Here > 0 {
			continue
		}
		if fresh++; taken[c.ID] {
			others = append(others, c)
			continue
		}
		c.As = c.ID
		counters.reserve(c.ID)
	}
	for _, c := range others {
		if c.As, err = counters.next(c.ID.Module, h.opts.Now()); err != nil {
			return err
		}
	}
	if fresh == 0 {
		return nil
	}
	return h.saveCounters(counters)
}

func (h home) MakeWay(id session.ID, to string) (back func() error, err error) {
	back = func() error { return h.move(to, folder.Path(id)) }
	err = h.withLease(sessionsDir, id, func(_ *writer.Lock, name string) error { return h.move(name, to) })
	if errors.Is(err, ErrNotFound) {
		return func() error { return nil }, nil
	}
	if err == nil {
		return back, nil
	}
	if _, missing := h.root().Lstat(to); missing == nil { // it is moved, though not durably, and would be removed there
		err = errors.Join(err, back())
	}
	return nil, err
}

// holding returns the session that has all of one that comes, and its last record; 0 if none
// has. One that cannot be read does not count.
func (h home) holding(infos []Info, c *carry.Claim) (session.ID, uint64) {
	at := c.At
	for _, i := range infos {
		if i.Incarnation != at.Incarnation || at.Incarnation == "" {
			continue
		}
		last, err := within(h.Store, "read", i.ID, func(dir writer.FS) (uint64, error) {
			log, err := journal.Read(dir, 0, true)
			if err != nil || log.Last() < at.Seq || !log.Holds(at.Epoch, at.Seq) {
				return 0, err
			}
			if covered, err := c.Covered(dir); err != nil || !covered {
				return 0, err
			}
			_, err = folder.Load(dir, i.ID)
			return log.Last(), err
		})
		if err == nil && last > 0 {
			return i.ID, last
		}
	}
	return session.ID{}, 0
}

func (h home) Checkpoints() (*checkpoint.Store, func() error, error) {
	cps, err := h.makeCheckpoints(nil)
	if err != nil {
		return nil, nil, err
	}
	return cps.Store, cps.Close, nil
}

// A Batch makes sessions that stand for sessions of an agent, with few syncs: they come into place
// together. Its methods are called one at a time.
type Batch struct {
	store   *Store
	staging *carry.Staging
	ids     []session.ID
	made    []string // the agent's session of each
}

// Batch begins a batch of sessions of these modules. Their IDs are reserved, durably. The caller
// closes the Batch.
func (s *Store) Batch(ctx context.Context, modules []string) (*Batch, error) {
	if err := s.layout(); err != nil {
		return nil, err
	}
	lock, err := s.lockCleared(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	counters, err := s.loadCounters()
	if err != nil {
		return nil, err
	}
	b := &Batch{store: s, ids: make([]session.ID, len(modules)), made: make([]string, len(modules))}
	for i, module := range modules {
		if b.ids[i], err = counters.next(module, s.opts.Now()); err != nil {
			return nil, err
		}
	}
	if err := s.saveCounters(counters); err != nil {
		return nil, err
	}
	if b.staging, err = carry.NewStaging(s.root(), writer.OwnerOf(os.Getpid(), s.opts.Command)); err != nil {
		return nil, err
	}
	s.reserve.Keep()
	return b, nil
}

// Create makes the session of the module with this number and holds it. It has the name unless that
// is "", and in its header what set writes there. Nothing of it is durable or in the store before
// its Close and then [Batch.Place] have returned nil.
func (b *Batch) Create(i int, agentSession, name string, set func(*session.Header)) (*Session, error) {
	s, id := b.store, b.ids[i]
	st, err := newState(id, s.opts.Now(), func(_ session.ID, h *session.Header) {
		set(h)
		h.AgentSession = agentSession
	})
	if err != nil {
		return nil, err
	}
	others, err := s.named(name)
	if err != nil {
		return nil, err
	}
	c, err := commit.Stage(commit.First{State: st, Event: record.EventCreated, Others: others}, b.staging.Path(), s.committing(id))
	if err != nil {
		return nil, fmt.Errorf("create session %s: %w", id, err)
	}
	b.made[i] = agentSession
	return s.run(c.State(), c, c.Durable())
}

// Place puts those sessions in place for which in returns true, durably. Their Close has returned
// nil. It leaves out those whose agent's session has one by now, and returns their numbers. A crash
// leaves each whole or not there, and so does an error.
func (b *Batch) Place(ctx context.Context, in func(i int) bool) (late []int, err error) {
	s := b.store
	lock, err := s.lockCleared(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	there, err := s.folders(sessionsDir)
	if err != nil {
		return nil, err
	}
	modules := map[string]bool{}
	for _, f := range there {
		modules[f.id.Module] = true
	}
	for i, id := range b.ids {
		if !in(i) {
			continue
		}
		if modules[id.Module] {
			if _, err := s.OfAgent(id.Module, b.made[i]); err == nil {
				late = append(late, i)
				continue
			} else if !errors.Is(err, ErrNotFound) {
				return nil, err
			}
		}
		if err := s.root().Rename(b.staging.Path()+"/"+id.String(), folder.Path(id)); err != nil {
			return nil, writer.NewError("create session", filepath.Join(s.Path(), folder.Path(id)), writer.NotCommitted, err)
		}
		s.Logger(id).Info().Msg("session created")
	}
	for _, dir := range []string{sessionsDir, b.staging.Path()} {
		if err := s.root().SyncDir(dir); err != nil {
			return nil, writer.NewError("create session", filepath.Join(s.Path(), dir), writer.NotDurable, err)
		}
	}
	return late, nil
}

// Close removes the sessions that were not placed. They are closed.
func (b *Batch) Close() error { return b.staging.Remove() }
