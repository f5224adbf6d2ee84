package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
// copied: the fork links the files of messages and events up to the length that is
// its own, its line of checkpoints goes on from the one that the other one last knew the
// project's files by, and deleting the other session takes nothing from it. When Fork
// returns the new session is durable. ErrNotFound names a record or message that is not there.
func (s *Store) Fork(ctx context.Context, id session.ID, at ForkOptions) (*Session, error) {
	dir, ld, err := s.readWhole(id)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	defer dir.Close()
	st, mark, err := forkPoint(dir, id, ld, at)
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
	c.share = func(to string) (session.Mark, error) {
		shared := session.Mark{Messages: mark.Messages, Transcript: mark.Transcript, OpenCalls: mark.OpenCalls, Checkpoint: mark.Checkpoint}
		for name, tail := range map[string]session.Tail{messagesStream: mark.Messages, transcriptStream: mark.Transcript} {
			if err := s.share(dir, id, to, name, tail); err != nil {
				return session.Mark{}, err
			}
		}
		return shared, nil
	}
	err = s.make(ctx, id.Module, c, func(fork session.ID, now time.Time) (*session.State, error) {
		return st.Derive(fork, now, session.Lineage{Kind: kind, From: id, Seq: mark.Seq})
	})
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", id, err)
	}
	fork, err := s.startNew(c)
	if err == nil {
		fork.log.Info().Stringer("from", id).Uint64("seq", mark.Seq).Msg("session forked")
	}
	return fork, err
}

// forkPoint is the State that a fork begins with, and how far its streams go.
func forkPoint(dir writer.FS, id session.ID, ld *loaded, at ForkOptions) (*session.State, session.Mark, error) {
	switch {
	case at.Message != "":
		tail, seq, err := findMessage(dir, ld.at.Messages, at.Message)
		if err != nil {
			return nil, session.Mark{}, err
		}
		st, mark, err := stateAt(dir, id, seq)
		if ld.state.Header().Lineage != nil { // what it inherited has the numbers of another journal
			if st1, mark1, err1 := stateAt(dir, id, 1); err1 == nil && tail.Count <= mark1.Messages.Count {
				st, mark, err = st1, mark1, nil
			}
		}
		if err != nil {
			return nil, session.Mark{}, err
		}
		if mark.Messages != tail { // there are more in the same record
			if mark.OpenCalls, err = openCalls(dir, tail); err != nil {
				return nil, session.Mark{}, err
			}
		}
		mark.Messages = tail
		return st, mark, nil
	case at.Seq != 0:
		return stateAt(dir, id, at.Seq)
	}
	return ld.state, ld.at, nil
}

// openCalls are the tool calls that have no answer among the messages up to a Tail.
func openCalls(dir writer.FS, to session.Tail) (open []string, err error) {
	for m, err := range readMessages(dir, to) {
		if err == nil {
			open = session.Answered(open, &m.Message)
		}
	}
	return open, nil
}

// share gives a session's new folder the files of a stream of another one; they are
// durable there with the folder's own name. Where links are refused they are copied.
func (s *Store) share(from writer.FS, id session.ID, to, stream string, tail session.Tail) error {
	files, err := journal.StreamFiles(from, stream, journal.Tail(tail))
	if err != nil {
		return err
	}
	for _, name := range files {
		old := sessionsDir + "/" + id.String() + "/" + name
		err := s.root().Link(old, to+"/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := from.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				continue // lost in both: reading tells of it
			}
		}
		if writer.RefusesLinks(err) {
			err = writer.CopyFile(s.root(), old, to+"/"+name, filePerm)
		}
		if err != nil {
			return writer.NewError("share", filepath.Join(s.Path(), old), writer.NotCommitted, err)
		}
	}
	return nil
}
