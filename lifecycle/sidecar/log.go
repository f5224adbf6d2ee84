package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/plain"
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

// The trailers of a message.
const (
	ofSession     = "Lopen-Session"
	ofTransaction = "Lopen-Transaction"
	ofCheckpoint  = "Lopen-Checkpoint"
	ofRecord      = "Lopen-Record"
	ofTree        = "Lopen-Tree" // the checkpoint's tree that the commit has
)

// maxCommits bounds the commits of a branch, and of main.
const maxCommits = 20000

// commits returns the commits of a branch, the newest first, without those of not. A trailer that
// is none of ours, or of another form, is left out: anybody can commit to the side-car.
func (s *Store) commits(ctx context.Context, tip, not string) (all []Commit, err error) {
	if tip == not {
		return nil, nil
	}
	format := []string{"%H", "%T", "%ct", "%s"}
	for _, key := range []string{ofSession, ofTransaction, ofCheckpoint, ofRecord, ofTree} {
		format = append(format, "%(trailers:key="+key+",valueonly,unfold,separator=%x20)")
	}
	args := []string{"rev-list", "--first-parent", "--max-count=" + strconv.Itoa(maxCommits), "--no-commit-header", "--format=" + strings.Join(format, "%x00") + "%x00", tip}
	if not != "" {
		args = append(args, "^"+not)
	}
	out, err := s.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(out), "\x00")
	for f := range slices.Chunk(fields[:len(fields)-1], len(format)) {
		if len(f) < len(format) {
			break
		}
		seconds, _ := strconv.ParseInt(f[2], 10, 64)
		c := Commit{ID: strings.TrimPrefix(f[0], "\n"), tree: f[1], At: time.Unix(seconds, 0).UTC(), Subject: f[3], Session: f[4], Transaction: f[5]}
		_ = c.Checkpoint.UnmarshalText([]byte(f[6]))
		c.Record, _ = strconv.ParseUint(f[7], 10, 64)
		_ = c.root.UnmarshalText([]byte(f[8]))
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, damaged(s.repo, "", "git rev-list printed no commit of "+tip+", as if the git on the PATH did not work")
	}
	return all, nil
}

// commit returns the commit of an ID.
func (s *Store) commit(ctx context.Context, id string) (*Commit, error) {
	all, err := s.commits(ctx, id, id+"^@")
	if err != nil {
		return nil, err
	}
	return &all[0], nil
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
	tip, err := s.ref(refOf(t.ID))
	if err == nil && tip == "" {
		err = fmt.Errorf("transaction %s: the branch %s is not in the side-car %s: %w; make it again from the checkpoints: lopen transaction commit %s --remake",
			t.ID, branchOf(t.ID), s.repo.Name(), folder.ErrNotFound, plain.Quote(t.ID))
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
	Gone    bool   `json:"gone,omitempty"`    // its branch is not in the side-car, or there is none
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
			err = fmt.Errorf("its commit %s is not on main of the side-car any more", oneLine(t.Commit))
		}
	case t.rolledBack(chain):
		st.State = RolledBack
	}
	tip, terr := s.tip(t)
	st.Gone = errors.Is(terr, folder.ErrNotFound)
	if st.Tip = tip; err == nil || errors.Is(err, ErrNoGit) {
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
