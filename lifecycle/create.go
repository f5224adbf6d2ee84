package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Create makes a new session of a module and holds it. When it returns nil, the session
// and its ID are durable. Any number of processes may create at once, and each gets
// another ID. Create waits for the store lock until ctx ends, at most ten seconds.
func (s *Store) Create(ctx context.Context, module string) (*Session, error) {
	return s.CreateWith(ctx, module, func(session.ID, *session.Header) {})
}

// CreateWith is Create for a session whose first State has what set writes into its header. set may
// name a linked work tree that is made after the session: so one that is named after its session
// is known to it before it exists.
func (s *Store) CreateWith(ctx context.Context, module string, set func(session.ID, *session.Header)) (*Session, error) {
	if set == nil {
		return nil, absent("create session", module, "function")
	}
	return s.createWith(ctx, module, "", set, nil)
}

func (s *Store) createWith(ctx context.Context, module, name string, set func(session.ID, *session.Header), free func() error) (*Session, error) {
	state := func(id session.ID, now time.Time) (*session.State, error) { return newState(id, now, set) }
	if !s.saves() {
		return s.createUnsaved(module, state)
	}
	others, err := s.named(name)
	if err != nil {
		return nil, err
	}
	sess, err := s.createFrom(ctx, module, first{event: record.EventCreated, state: state, others: others, free: free})
	if err == nil {
		sess.log.Info().Msg("session created")
	}
	return sess, err
}

// named returns what writes a display name into the folder of a new session; nil for "".
func (s *Store) named(name string) (func(dir writer.FS) error, error) {
	if name == "" {
		return nil, nil
	}
	name, _ = s.opts.Policy.redactor().String(name)
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "") // it may have become longer
	return func(dir writer.FS) error { return folder.WriteSmall(dir, metaFile, Meta{Name: name}) }, validName(name)
}

// newState returns the first State of a session, with what set writes into its header.
func newState(id session.ID, now time.Time, set func(session.ID, *session.Header)) (*session.State, error) {
	st, err := session.New(id, now)
	if err != nil {
		return nil, err
	}
	e := st.Edit()
	set(id, e.Header())
	return e.State()
}

// first says how a new session begins; see [commit.First].
type first struct {
	event  record.Event
	state  func(session.ID, time.Time) (*session.State, error)
	share  func(folder string) (session.Mark, error)
	others func(dir writer.FS) error
	// free returns an error if the session must not be made. The caller holds the store lock.
	free func() error
}

// createFrom makes a session and holds it.
func (s *Store) createFrom(ctx context.Context, module string, f first) (*Session, error) {
	c, err := s.make(ctx, module, f)
	if err != nil {
		return nil, err
	}
	sess, err := s.run(c.State(), c, c.Durable())
	if err != nil {
		return nil, err
	}
	s.reserve.Keep()
	return sess, nil
}

// make makes a session of a module, durably. The committer holds its lease.
func (s *Store) make(ctx context.Context, module string, f first) (*commit.Committer, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "create session", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	if err := s.layout(); err != nil { // .lopen, with the store lock, may have been removed since Open
		return nil, err
	}
	lock, err := s.lockCleared(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	if f.free != nil {
		if err := f.free(); err != nil {
			return nil, err
		}
	}
	now := s.opts.Now()
	id, err := s.nextID(module, now)
	if err != nil {
		return nil, err
	}
	st, err := f.state(id, now)
	if err != nil {
		return nil, err
	}
	c, err := commit.Make(commit.First{State: st, Event: f.event, Share: f.share, Others: f.others}, s.committing(id))
	if err != nil {
		return nil, fmt.Errorf("create session %s: %w", id, err)
	}
	if st.Header().Origin != session.OriginImport {
		s.setLatest(id)
	}
	return c, nil
}

// refreshLatest points the hint at the newest session if the one that it names is gone. The
// caller holds the store lock.
func (s *Store) refreshLatest() {
	id, err := s.latest()
	if err == nil {
		if hint, herr := s.root().Readlink(sessionsDir + "/" + latestLink); herr != nil || hint != id.String() {
			s.setLatest(id)
		}
		return
	}
	for _, name := range []string{latestLink, latestText} {
		if err := s.root().Remove(sessionsDir + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Logger.Warn().Err(err).Msg("the hint to the latest session could not be removed")
		}
	}
}

// setLatest points the hint at id. A failure is only logged, because readers without the
// hint use the newest session.
func (s *Store) setLatest(id session.ID) {
	err := writer.ReplaceSymlink(s.root(), id.String(), sessionsDir+"/"+latestLink)
	if writer.RefusesLinks(err) {
		err = writer.ReplaceFile(s.root(), sessionsDir+"/"+latestText, []byte(id.String()+"\n"), filePerm)
	}
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("the hint to the latest session could not be written")
	}
}

// ForkOptions say from where a fork continues. The zero value means the newest record.
type ForkOptions struct {
	Seq     uint64 // number of a record of the journal; 0 means the newest
	Message string // UUID of the message that becomes the fork's last one; it wins over Seq
	// Continue marks the fork as the next session of the same work.
	Continue bool
}

// Fork makes a new session from another one as it is or was, and holds the new one. The
// other session may be live in any process and is not changed. The fork links the segments
// that hold messages and events, and copies them only where links are refused. Its line of
// checkpoints continues from the other session's last one. The fork stays whole when the
// other session is deleted. When Fork returns nil the new session is durable. The error
// wraps ErrNotFound if there is no such record or message.
func (s *Store) Fork(ctx context.Context, id session.ID, at ForkOptions) (*Session, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	defer ld.Dir.Close()
	st, mark, seq, err := forkPoint(ld, at)
	if err == nil {
		st, err = st.WithBoxes(ld.State)
	}
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	kind := session.LineageForked
	if at.Continue {
		kind = session.LineageContinued
	}
	fork, err := s.createFrom(ctx, id.Module, first{
		event: record.EventForked,
		share: func(to string) (session.Mark, error) { return s.share(ld.Dir, folder.Path(id), to, mark) },
		state: func(fork session.ID, now time.Time) (*session.State, error) {
			return st.Derive(fork, now, session.Lineage{Kind: kind, From: id, Seq: seq})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	fork.log.Info().Stringer("from", id).Uint64("seq", seq).Msg("session forked")
	return fork, nil
}

// forkPoint returns the State that a fork begins with, the number of its record, and the Mark
// up to which the fork has the conversation. For a message it is the State that became
// durable with the message. For an inherited message it is the session's first State.
func forkPoint(ld *folder.Contents, at ForkOptions) (st *session.State, mark session.Mark, seq uint64, err error) {
	dir, id := ld.Dir, ld.State.ID()
	switch {
	case at.Message != "":
		upTo, err := folder.FindMessage(dir, ld.At, at.Message)
		if err != nil {
			return nil, mark, 0, err
		}
		if seq = 1; upTo.Seq > 0 {
			log, err := journal.Read(dir, 0, true)
			if err != nil {
				return nil, mark, 0, err
			}
			seq = log.Batch(upTo.Seq)
		}
		st, mark, err = folder.StateAt(dir, id, seq)
		upTo.Checkpoint = mark.Checkpoint
		return st, upTo, seq, err
	case at.Seq != 0:
		st, mark, err = folder.StateAt(dir, id, at.Seq)
		return st, mark, at.Seq, err
	}
	return ld.State, ld.At, ld.At.Seq, nil
}

// share links the segments that have the messages and events up to mark into the new folder
// to: those of the session in old, and those that it inherited. It copies them where links
// are refused, and does not read them. They are durable once the name of the new folder is.
// share returns the Mark that the new session begins with.
func (s *Store) share(from writer.FS, old, to string, mark session.Mark) (session.Mark, error) {
	shared := session.Mark{Messages: mark.Messages, Transcript: mark.Transcript, OpenCalls: mark.OpenCalls, Checkpoint: mark.Checkpoint}
	shared.Inherits = slices.Clone(mark.Inherits)
	if mark.Seq > 0 && mark.Messages+mark.Transcript > 0 {
		shared.Inherits = append(shared.Inherits, mark.Seq)
	}
	for k := range shared.Inherits {
		log := "."
		if k < len(mark.Inherits) {
			log = folder.InheritedLog(k)
		}
		into := to + "/" + folder.InheritedLog(k)
		for try := 1; ; try++ {
			err := s.link(from, old, log, into)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) || try == folder.Tries {
				return shared, writer.NewError("share", filepath.Join(from.Name(), log), writer.NotCommitted, err)
			}
			if err := s.root().RemoveAll(into); err != nil { // begin again: a segment was rewritten meanwhile
				return shared, err
			}
		}
	}
	return shared, nil
}

// link links the files of a session's log into a folder. The error is fs.ErrNotExist if one
// was removed meanwhile.
func (s *Store) link(from writer.FS, old, log, into string) error {
	for _, dir := range []string{path.Dir(into), into} {
		if err := writer.MkdirDurable(s.root(), dir); err != nil {
			return err
		}
	}
	entries, err := from.ReadDir(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a missing log is missing in the fork too
		return err
	}
	for _, e := range entries {
		if !journal.IsSegment(e.Name()) && e.Name() != journal.ListFile {
			continue
		}
		if err := s.linkFile(path.Join(old, log, e.Name()), into+"/"+e.Name()); err != nil {
			return err
		}
	}
	return s.root().SyncDir(into)
}

// linkFile makes a second name of a file, or a copy where links are refused. The content is
// durable, the name is not.
func (s *Store) linkFile(from, to string) error {
	f, _, err := writer.OpenRegular(s.root(), "share", from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	err = s.root().Link(from, to)
	if writer.RefusesLinks(err) {
		err = writer.CopyFile(s.root(), from, to, filePerm)
	}
	return err
}

// counters is the content of ids.json: the highest counter that was used for each
// "{module}-{day}". Entries of past days stay, so that no ID is given twice when a clock is
// set back.
type counters struct {
	Counters map[string]uint64 `json:"counters"`
}

// nextID reserves an ID: the counter is durable before it is returned. The
// caller holds the store lock.
func (s *Store) nextID(module string, now time.Time) (session.ID, error) {
	c, err := s.loadCounters()
	if err != nil {
		return session.ID{}, err
	}
	id, err := c.next(module, now)
	if err != nil {
		return session.ID{}, err
	}
	return id, s.saveCounters(c)
}

// next raises the counter of a module and a day, and returns the ID.
func (c counters) next(module string, now time.Time) (session.ID, error) {
	key := module + "-" + now.UTC().Format("20060102")
	c.Counters[key]++
	return session.NewID(module, now, c.Counters[key])
}

// reserve raises a counter so that an ID is never given again.
func (c counters) reserve(id session.ID) {
	key := id.Module + "-" + id.Day
	c.Counters[key] = max(c.Counters[key], id.Counter)
}

// saveCounters makes the counters durable. The caller holds the store lock.
func (s *Store) saveCounters(c counters) error {
	if err := folder.WriteSmall(s.root(), idsFile, c); err != nil {
		return fmt.Errorf("reserve session id: %w", err)
	}
	return nil
}

// reserveID makes sure, durably, that an ID is never given again. The caller holds the store
// lock.
func (s *Store) reserveID(id session.ID) error {
	c, err := s.loadCounters()
	if err != nil {
		return err
	}
	c.reserve(id)
	return s.saveCounters(c)
}

// loadCounters reads ids.json and raises the counters to those of existing sessions. So no
// existing ID is given again when the file is missing, damaged or restored from an old
// backup. Only IDs of deleted sessions could be given again. Damage is logged.
func (s *Store) loadCounters() (counters, error) {
	c, err := s.readCounters()
	if err != nil {
		return c, err
	}
	all, err := s.folders(sessionsDir)
	for _, place := range []string{trashDir, corruptedDir} {
		elsewhere, _ := s.folders(place) // as far as it can be read
		all = append(all, elsewhere...)
	}
	for _, f := range all {
		c.reserve(f.id)
	}
	return c, err
}

func (s *Store) readCounters() (counters, error) {
	none := counters{Counters: map[string]uint64{}}
	c := counters{}
	err := folder.ReadSmall(s.root(), idsFile, &c)
	switch {
	case err == nil && c.Counters != nil:
		return c, nil
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil && !errors.Is(err, ErrCorrupt):
		return none, fmt.Errorf("reserve session id: %w", err)
	}
	s.opts.Logger.Warn().AnErr("error", err).Str("file", idsFile).Msg("session counters are damaged: derived again from the sessions that are there")
	return none, nil
}

// A sessionFolder is the folder of a session.
type sessionFolder struct {
	id   session.ID
	name string
	path string // below .lopen
}

// folders lists the session folders in sessions/, in the trash or in corrupted/, in no
// order. A name in corrupted/ is {id}-{time}, with a number if that was taken.
func (s *Store) folders(in string) ([]sessionFolder, error) {
	entries, err := s.root().ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", in, err)
	}
	return foldersOf(in, entries), nil
}

func foldersOf(in string, entries []fs.DirEntry) []sessionFolder {
	all, moved := make([]sessionFolder, 0, len(entries)), writer.MovedNames(entries)
	for _, e := range entries {
		name := e.Name()
		if in == corruptedDir {
			name = name[:max(strings.LastIndexByte(name, '-'), 0)]
		}
		if id, err := session.ParseID(name); err == nil && e.IsDir() && !moved[e.Name()] {
			all = append(all, sessionFolder{id, e.Name(), in + "/" + e.Name()})
		}
	}
	return all
}

// OpenOfAgent opens the session that OfAgent returns. If there is none it creates one as
// [Store.CreateWith] does; its first State has the agent's session, and it has the name unless that is "".
// With a nil set it creates none, and the error wraps ErrNotFound. Two processes at once make one session,
// and one of them gets a [*BusyError].
func (s *Store) OpenOfAgent(ctx context.Context, module, agentSession, name string, set func(*session.Header)) (sess *Session, made bool, err error) {
	var there session.ID
	find := func() (err error) {
		if there, err = s.OfAgent(module, agentSession); err == nil {
			return fs.ErrExist
		}
		if errors.Is(err, ErrNotFound) && set != nil {
			return nil
		}
		return err
	}
	err = find()
	if err == nil {
		sess, err = s.createWith(ctx, module, name, func(_ session.ID, h *session.Header) {
			set(h)
			h.AgentSession = agentSession
		}, find)
	}
	if errors.Is(err, fs.ErrExist) && there != (session.ID{}) {
		sess, err = s.Open(there)
		return sess, false, err
	}
	return sess, err == nil, err
}
