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
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// ForkOptions say from where a fork goes on. The zero value is the newest record.
type ForkOptions struct {
	Seq     uint64 // a record of the journal
	Message string // the uuid of a message, which is the fork's last one
	// Continue notes the fork as the next session of the same work.
	Continue bool
}

// Fork makes a new session from another one as it is or was, and holds the new one.
// The other one may be live in any process; it is not touched. What both have is not
// copied: the fork links the segments that messages and events stand in, its line of checkpoints goes on from the one that the other one last knew the
// project's files by, and deleting the other session takes nothing from it. When Fork
// returns the new session is durable. ErrNotFound names a record or message that is not there.
func (s *Store) Fork(ctx context.Context, id session.ID, at ForkOptions) (*Session, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	defer ld.dir.Close()
	st, mark, seq, err := ld.forkPoint(at)
	if err == nil {
		st, err = st.WithBoxes(ld.state)
	}
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	kind := session.LineageForked
	if at.Continue {
		kind = session.LineageContinued
	}
	c := &committer{event: session.EventForked}
	c.share = func(to string) (session.Mark, error) { return s.share(ld.dir, sessionsDir+"/"+id.String(), to, mark) }
	err = s.make(ctx, id.Module, c, func(fork session.ID, now time.Time) (*session.State, error) {
		return st.Derive(fork, now, session.Lineage{Kind: kind, From: id, Seq: seq})
	})
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	fork, err := s.startNew(c)
	if err == nil {
		fork.log.Info().Stringer("from", id).Uint64("seq", seq).Msg("session forked")
	}
	return fork, err
}

// forkPoint is the State that a fork begins with, its record, and up to where the fork has
// what was said. That of a message is the one that became durable with it, and of an
// inherited one the first.
func (ld *loaded) forkPoint(at ForkOptions) (st *session.State, mark session.Mark, seq uint64, err error) {
	dir, id := ld.dir, ld.state.ID()
	switch {
	case at.Message != "":
		said, err := findMessage(dir, ld.at, at.Message)
		if err != nil {
			return nil, mark, 0, err
		}
		if seq = 1; said.Seq > 0 {
			log, err := journal.Read(dir, 0, true)
			if err != nil {
				return nil, mark, 0, err
			}
			seq = log.Batch(said.Seq)
		}
		st, mark, err = stateAt(dir, id, seq)
		said.Checkpoint = mark.Checkpoint
		return st, said, seq, err
	case at.Seq != 0:
		st, mark, err = stateAt(dir, id, at.Seq)
		return st, mark, at.Seq, err
	}
	return ld.state, ld.at, ld.at.Seq, nil
}

// share gives a session's new folder the segments of the one in old that have messages and
// events up to a Mark, and those that the other one inherited. They are durable there
// with the folder's own name. Where links are refused they are copied. It reads none of them and
// returns what of the Mark the new session begins with.
func (s *Store) share(from writer.FS, old, to string, mark session.Mark) (session.Mark, error) {
	shared := session.Mark{Messages: mark.Messages, Transcript: mark.Transcript, OpenCalls: mark.OpenCalls, Checkpoint: mark.Checkpoint}
	shared.Inherits = slices.Clone(mark.Inherits)
	if mark.Seq > 0 && mark.Messages+mark.Transcript > 0 {
		shared.Inherits = append(shared.Inherits, mark.Seq)
	}
	for k := range shared.Inherits {
		log := "."
		if k < len(mark.Inherits) {
			log = inheritedLog(k)
		}
		into := to + "/" + inheritedLog(k)
		for try := 1; ; try++ {
			err := s.link(from, old, log, into)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) || try == readTries {
				return shared, writer.NewError("share", filepath.Join(from.Name(), log), writer.NotCommitted, err)
			}
			if err := s.root().RemoveAll(into); err != nil { // a segment was rewritten meanwhile
				return shared, err
			}
		}
	}
	return shared, nil
}

// link gives a folder the files of a session's log. The error is fs.ErrNotExist where one went
// meanwhile.
func (s *Store) link(from writer.FS, old, log, into string) error {
	for _, dir := range []string{path.Dir(into), into} {
		if err := writer.MkdirDurable(s.root(), dir); err != nil {
			return err
		}
	}
	entries, err := from.ReadDir(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a log that is lost is lost in both
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

// linkFile makes a second name of a file, or a copy where links are refused; its content is durable.
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
