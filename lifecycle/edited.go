package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// An Edit says what somebody changed in a session's files outside.
type Edit struct {
	Changes []string          // operations and how many, as the log names them
	Known   bool              // what was written before could be read: Changes says all
	Rules   []session.Finding // that what was edited breaks
}

// AcceptEdit takes a session's files as somebody edited them: the change becomes a
// record of the journal, where what was before can be read; else the whole State goes
// to history/ and the record names it. Then both files are written anew with their
// checksums. A crash leaves the session as edited as it was,
// or accepted. With dryRun it only says what was edited. A session that was not is
// left alone, and the error says so.
func (s *Store) AcceptEdit(id session.ID, dryRun bool) (Edit, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return Edit{}, fmt.Errorf("accept edit of session %s: %w", id, err)
	}
	c := &committer{store: s, id: id, mark: &atomic.Pointer[session.Mark]{}, dir: dir, lease: sessionsDir + "/" + id.String() + "/" + leaseFile, event: session.EventRecovered, edited: true}
	edit, err := c.acceptEdit(dryRun)
	if err != nil {
		err = fmt.Errorf("accept edit of session %s: %w", id, err)
	} else if !dryRun {
		s.Logger(id).Info().Strs("changes", edit.Changes).Msg("edit accepted")
	}
	return edit, errors.Join(err, c.Close())
}

func (c *committer) acceptEdit(dryRun bool) (Edit, error) {
	ld, err := join(c.dir, c.id)
	if err != nil {
		return Edit{}, damagedIn(c.id, sessionsDir+"/"+c.id.String(), unreadable("load session", c.dir.Name(), err))
	}
	if ld.edited == nil {
		return Edit{}, &Error{Op: "accept edit", Path: c.dir.Name(), Class: writer.ClassInvalid, Err: errors.New("it was not edited outside")}
	}
	before, beforeErr := unedited(c.dir, c.id)
	edit := Edit{Known: beforeErr == nil, Rules: ld.findings()}
	if edit.Known {
		if edit.Changes, err = changes(before, ld.state); err != nil {
			return edit, err
		}
	}
	if dryRun {
		return edit, nil
	}
	if _, err := c.acquire(); err != nil { // reads it again, under the lease
		return edit, err
	}
	st := c.base
	if c.base = nil; edit.Known {
		c.base = before
	}
	c.whole = !edit.Known // no record leads from what is not known: this one names all of it
	if _, err := c.append(actors.Batch{State: st}); err != nil {
		return edit, err
	}
	c.at.Iterations = c.at.Seq // so that metrics.json is written, whichever of the two was edited
	err = c.pub.job(c.dir, c.base, c.at, true)()
	c.pub.ended(err)
	return edit, err
}

// unedited is the State that the journal and history/ lead to.
func unedited(dir writer.FS, id session.ID) (*session.State, error) {
	log, err := journal.Read(dir, 0, true)
	if err != nil {
		return nil, err
	}
	all, err := history.List(dir)
	if err != nil {
		return nil, err
	}
	st, _, err := nearest(dir, id, log, all, log.Last())
	return st, err
}

// changes are the operations between two States, counted.
func changes(from, to *session.State) ([]string, error) {
	body := session.EncodeChange(from, to, session.Record{}, 0).Body
	rec, err := session.DecodeRecord(fmt.Appendf(nil, `{"seq":1,%s}`, body))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, op := range rec.Ops {
		counts[op.Name]++
	}
	all := []string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return all, nil
}
