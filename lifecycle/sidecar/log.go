package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Commit is a commit of the side-car.
type Commit struct {
	ID          string        `json:"id"`
	At          time.Time     `json:"at"`
	Subject     string        `json:"subject"`
	Session     string        `json:"session,omitempty"`
	Transaction string        `json:"transaction,omitempty"`
	Checkpoint  checkpoint.ID `json:"checkpoint,omitzero"`
	Record      uint64        `json:"record,omitempty"` // of the session's log, up to which the branch has it

	tree string    // of git
	root blob.Hash // of the checkpoint whose tree it has; zero if it has none's
}

// maxCommits bounds the commits of a branch, and of main.
const maxCommits = 20000

// commits returns the commits of a branch, the newest first, without those of not.
func (s *Store) commits(ctx context.Context, tip, not string) (all []Commit, err error) {
	args := []string{"rev-list", "--first-parent", "--max-count=" + strconv.Itoa(maxCommits), "--format=%T%n%ct%n%B%x00", tip}
	if not != "" {
		args = append(args, "^"+not)
	}
	out, err := s.git(ctx, 0, nil, args...)
	if err != nil {
		return nil, s.failed(err)
	}
	for text := range strings.SplitSeq(string(out), "\x00") {
		if text = strings.TrimPrefix(text, "\n"); text == "" {
			continue
		}
		c, err := parseCommit(text)
		if err != nil {
			return nil, s.failed(&gitError{"rev-list", text[:min(len(text), 100)], err})
		}
		all = append(all, c)
	}
	return all, nil
}

// commit returns the commit of an ID.
func (s *Store) commit(ctx context.Context, id string) (*Commit, error) {
	all, err := s.commits(ctx, id, id+"^@")
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("commit %s of the side-car: %w", id, folder.ErrNotFound)
	}
	return &all[0], nil
}

// parseCommit parses what rev-list prints of a commit. A trailer that is none of ours, or of
// another form, is left out: anybody can commit to the side-car.
func parseCommit(text string) (c Commit, err error) {
	lines := strings.Split(text, "\n")
	id, ok := strings.CutPrefix(lines[0], "commit ")
	if !ok || len(lines) < 4 {
		return c, errors.New("it is no commit")
	}
	seconds, err := strconv.ParseInt(lines[2], 10, 64)
	if err != nil {
		return c, err
	}
	c = Commit{ID: id, tree: lines[1], At: time.Unix(seconds, 0).UTC(), Subject: lines[3]}
	for _, line := range lines[4:] {
		if v, ok := strings.CutPrefix(line, ofSession); ok {
			c.Session = v
		} else if v, ok := strings.CutPrefix(line, ofTransaction); ok {
			c.Transaction = v
		} else if v, ok := strings.CutPrefix(line, ofCheckpoint); ok {
			_ = c.Checkpoint.UnmarshalText([]byte(v))
		} else if v, ok := strings.CutPrefix(line, ofRecord); ok {
			c.Record, _ = strconv.ParseUint(v, 10, 64)
		} else if v, ok := strings.CutPrefix(line, ofTree); ok {
			_ = c.root.UnmarshalText([]byte(v))
		}
	}
	return c, nil
}

// Log returns the commits of a transaction's branch, the newest first.
func (s *Store) Log(ctx context.Context, t *Transaction) ([]Commit, error) {
	tip, err := s.tip(t)
	if err != nil {
		return nil, err
	}
	return s.commits(ctx, tip, t.Base)
}

// tip returns the newest commit of a transaction's branch.
func (s *Store) tip(t *Transaction) (string, error) {
	if err := s.open(); err != nil {
		return "", err
	}
	tip, err := s.ref("refs/heads/" + branchOf(t.ID))
	if err == nil && tip == "" {
		err = fmt.Errorf("transaction %s: the branch %s is not in the side-car %s: %w; make it again from the checkpoints: lopen transaction commit %s --remake",
			t.ID, branchOf(t.ID), s.repo.Name(), folder.ErrNotFound, t.ID)
	}
	return tip, err
}

// onMain returns the commits on main by the transaction that they have.
func (s *Store) onMain(ctx context.Context) (map[string]string, error) {
	err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tip, err := s.ref(mainRef)
	if err != nil || tip == s.main {
		return s.merged, err
	}
	all, err := s.commits(ctx, tip, "")
	if err != nil {
		return nil, err
	}
	s.main, s.merged = tip, map[string]string{}
	for _, c := range all {
		if c.Transaction != "" && strings.HasPrefix(c.Subject, squashed) {
			s.merged[c.Transaction] = c.ID
		}
	}
	return s.merged, nil
}

// Status is a transaction as git, its manifest and the checkpoints have it.
type Status struct {
	*Transaction
	State   State  `json:"state"`
	Branch  string `json:"branch"`
	Tip     string `json:"tip,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Problem string `json:"problem,omitempty"` // why it is not known better, and what to do
}

// Status returns what has become of a transaction. chain are all entries of the checkpoints. If
// git or the side-car cannot tell, the manifest does, and Problem says so.
func (s *Store) Status(ctx context.Context, t *Transaction, chain []*checkpoint.Entry) Status {
	st := Status{Transaction: t, State: InProgress, Branch: branchOf(t.ID), Commit: t.Commit}
	merged, err := s.onMain(ctx)
	switch {
	case merged[t.ID] != "":
		st.State, st.Commit = Committed, merged[t.ID]
	case t.State == Committed:
		st.State = Committed
		if err == nil {
			err = fmt.Errorf("its commit %s is not on %s of the side-car any more", oneLine(t.Commit), "main")
		}
	case t.rolledBack(chain):
		st.State = RolledBack
	}
	if err == nil || errors.Is(err, ErrNoGit) {
		tip, terr := s.tip(t)
		st.Tip = tip
		err = errors.Join(err, terr)
	}
	if st.State == InProgress && !s.alive(t) {
		err = errors.Join(err, fmt.Errorf("its session %s is not here any more, so nothing ends it: its commits stay on the branch", oneLine(t.Session)))
	}
	if err != nil {
		st.Problem = err.Error()
	}
	return st
}
