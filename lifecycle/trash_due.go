package lifecycle

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// confirmed is how long after a mark a session in the trash is deleted at the earliest.
const confirmed = 24 * time.Hour

// trashed is the content of trash/{id}.json, which is written before the folder is moved there.
//
// Nothing is deleted for good on the word of one clock. A command that finds a session due marks
// it. A later command deletes it, if the session is due by its clock as well, the mark is at least
// a day old by its clock, and the store knows a time at least a day after the mark. So two commands
// have to agree, and all between them: if the clock of one of them is right, the session is due. A
// command by whose clock the session is not due removes the mark. A mark in the future was made with
// a wrong clock, or is read with one: it is replaced.
type trashed struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
	// Ahead is when a command first found At in the future: the time in the trash counts from then
	// on, or a clock that was ahead once would keep the session for years.
	Ahead time.Time `json:"ahead,omitzero"`
	Due   time.Time `json:"due,omitzero"`   // the mark
	Again time.Time `json:"again,omitzero"` // when a later command found the session due, a day after the mark
}

// A verdict is what a command finds of a session in the trash.
type verdict int

const (
	stayed  verdict = iota
	marked          // it is due; a later command deletes it
	deleted         // it is deleted for good
)

// judge says what becomes of a session in the trash, and the note that a command leaves of it. known
// is the newest time that the store knows, of those that are not in the future.
func (t trashed) judge(now, known time.Time, stays time.Duration) (trashed, verdict) {
	since := t.At
	if since.After(now) {
		if t.Ahead.IsZero() || t.Ahead.After(now) {
			t.Ahead = now
		}
		since = t.Ahead
	}
	if now.Sub(since) <= stays { // by this clock, which may be right: what an earlier one said does not count
		t.Due, t.Again = time.Time{}, time.Time{}
		return t, stayed
	}
	switch {
	case t.Due.IsZero() || t.Due.After(now):
		t.Due, t.Again = now, time.Time{}
		return t, marked
	case t.Again.After(now):
		t.Again = time.Time{}
	}
	if t.Again.After(known) {
		known = t.Again
	}
	if known.Sub(t.Due) < confirmed { // known is not after now, so the mark is a day old by this clock as well
		t.Again = now // the next command may rely on it
		return t, marked
	}
	return t, deleted
}

// known returns the newest time that a session has, of those that are not after now: a time in the
// future was written with a wrong clock, or now is wrong, and neither must count.
func (s *Store) known(now time.Time) (newest time.Time) {
	infos, err := s.List()
	if err != nil {
		return time.Time{} // nothing is known, and nothing is deleted
	}
	for _, i := range infos {
		for _, at := range []time.Time{i.UpdatedAt, i.CompletedAt} {
			if !at.After(now) && at.After(newest) {
				newest = at
			}
		}
	}
	return newest
}

// expired returns the sessions that were in the trash for too long and that may be deleted for
// good. It marks the others that are due, unless this is a dry run, and returns them as waiting.
func (s *Store) expired(r Retention, dryRun bool) (gone, waiting []Retired, err error) {
	if r.Trash <= 0 {
		return nil, nil, nil
	}
	all, err := s.Trash()
	now := s.opts.Now().UTC()
	var known time.Time
	if len(all) > 0 {
		known = s.known(now)
	}
	for _, x := range all {
		before := s.note(x.ID)
		if before.At.IsZero() {
			continue
		}
		after, v := before.judge(now, known, r.Trash)
		if after != before && !dryRun {
			if err := folder.WriteSmall(s.root(), noteOf(x.ID), after); err != nil {
				return nil, nil, err
			}
		}
		x.ForGood, x.Why = true, fmt.Sprintf("in the trash for more than %d days", int(r.Trash.Hours()/24))
		switch v {
		case deleted:
			gone = append(gone, x)
		case marked:
			x.Marked = after.Due
			waiting = append(waiting, x)
		case stayed:
		}
	}
	return gone, waiting, err
}

func noteOf(id session.ID) string { return trashDir + "/" + id.String() + ".json" }

// checkTrash says why sessions in the trash that are due are not deleted yet.
func (s *Store) checkTrash() (all []repair.Check) {
	trash, err := s.Trash()
	if err != nil {
		return []repair.Check{repair.Failed(trashDir, err)}
	}
	now := s.opts.Now()
	for _, x := range trash {
		t := s.note(x.ID)
		c := repair.Check{Name: x.ID.String()}
		switch {
		case t.At.IsZero():
			c.Found = "in the trash with a note that cannot be read: it is never deleted by itself"
		case t.At.After(now):
			c.Found = fmt.Sprintf("in the trash since %s, which is in the future: its days there count from the next lopen session prune on", day(t.At))
			if !t.Ahead.IsZero() {
				c.Found = fmt.Sprintf("in the trash since %s, which is in the future: its days there count from %s", day(t.At), day(t.Ahead))
			}
		case !t.Due.IsZero():
			c.Found = fmt.Sprintf("in the trash, marked on %s, deleted for good by a command after %s", day(t.Due), day(t.Due.Add(confirmed)))
		default:
			continue
		}
		all = append(all, c)
	}
	return all
}

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
