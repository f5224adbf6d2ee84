package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// An Edit says what somebody changed in a session's files outside.
type Edit struct {
	Changes []string          // operations and how many, as the log names them
	Rules   []session.Finding // that what was edited breaks
}

// AcceptEdit takes a session's files as somebody edited them: the change becomes a
// record of the journal, and both files are written anew with their checksums. A crash
// leaves the session as edited as it was, or accepted. With dryRun it only says what was
// edited. A session that was not is left alone, and the error says so.
func (s *Store) AcceptEdit(id session.ID, dryRun bool) (Edit, error) {
	return s.endEdit(id, "accept edit", dryRun, false)
}

// DiscardEdit sets the files of a session aside that somebody edited, in its folder, and
// makes them again from the journal. Otherwise it is AcceptEdit.
func (s *Store) DiscardEdit(id session.ID, dryRun bool) (Edit, error) {
	return s.endEdit(id, "discard edit", dryRun, true)
}

func (s *Store) endEdit(id session.ID, op string, dryRun, discard bool) (Edit, error) {
	c, err := s.committer(id, session.EventRecovered)
	if err != nil {
		return Edit{}, fmt.Errorf("%s of session %s: %w", op, id, err)
	}
	c.edited, c.discard = true, discard
	edit, err := c.endEdit(op, dryRun)
	if err != nil {
		err = fmt.Errorf("%s of session %s: %w", op, id, err)
	} else if !dryRun {
		s.Logger(id).Info().Strs("changes", edit.Changes).Msg(map[bool]string{false: "edit accepted", true: "edit discarded"}[discard])
	}
	return edit, errors.Join(err, c.Close())
}

func (c *committer) endEdit(op string, dryRun bool) (edit Edit, err error) {
	ld, err := join(c.dir, c.id)
	if err != nil {
		return edit, damagedIn(c.id, sessionsDir+"/"+c.id.String(), err)
	}
	if ld.unedited == nil {
		return edit, &Error{Op: op, Path: c.dir.Name(), Class: writer.ClassInvalid, Err: errors.New("it was not edited outside")}
	}
	edit.Rules = ld.findings()
	if edit.Changes, err = changes(ld.unedited, ld.state); err != nil || dryRun {
		return edit, err
	}
	if ld, err = c.acquire(); err != nil { // which reads it again, under the lease
		return edit, err
	}
	if !c.discard {
		if _, err := c.append(actors.Batch{State: ld.state}); err != nil {
			return edit, err
		}
	}
	return edit, c.publish()
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
