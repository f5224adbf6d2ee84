package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
)

// What no lopen writes into the row of a session.
const (
	longestLease = 2 * Lease // by the clock of the database, which may be set back a little
	maxTerm      = 1 << 62
)

// A SessionError is returned for a session of the fleet whose rows cannot be true, as lopen wrote none like them, or that
// are more than there is room for. While they are so the session is not taken, nothing is shipped to it, and nobody is
// fenced by it.
type SessionError struct {
	ID   session.ID
	Host string // that the row names
	Err  error
}

func (e *SessionError) Error() string {
	return fmt.Sprintf("session %s of the fleet, by %s, cannot be used: %s", e.ID, e.Host, shown(e.Err.Error(), maxExplained))
}

func (e *SessionError) Unwrap() error { return e.Err }

// Believe returns a [*SessionError] if the row of a session cannot be true, as far as one question says: there is no
// record behind its last number, its sum is another, or its lease is longer than any that lopen takes. [Fleet.Fetch] looks
// at all records.
func (f *Fleet) Believe(ctx context.Context, x *Found) error {
	err := x.row.possible()
	if err == nil {
		err = f.headed(ctx, &x.row)
	}
	return x.doubted(err)
}

// doubted makes a SessionError of an error that says what is wrong in the database.
func (x *Found) doubted(err error) error {
	if c := writer.ClassOf(err); err != nil && (c == writer.ClassCorrupt || c == writer.ClassNoSpace) && !errors.As(err, new(*SessionError)) {
		return &SessionError{x.ID, cmp.Or(x.Host, x.row.host), err}
	}
	return err
}

// possible returns an error for a row that no lopen writes, whatever the records are.
func (r *row) possible() error {
	switch {
	case r.term < 0 || r.term >= maxTerm:
		return refused("sessions", "its lease has the term %d", r.term)
	case r.holder != "" && r.left > longestLease:
		return refused("sessions", "its lease is over in %s, and one lasts %s", r.left.Round(time.Second), Lease)
	}
	return nil
}

// headed returns an error unless a row has the number and the sum of its last record.
func (f *Fleet) headed(ctx context.Context, r *row) error {
	if r.head == 0 {
		return nil
	}
	var seq int64
	var sum []byte
	err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, fmt.Sprintf(`SELECT seq, substring(sum FROM 1 FOR %d) FROM lopen_data.records WHERE session = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1`, maxHash),
			r.key, int64(r.head)).Scan(&seq, &sum)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return refused("records", "it has no record, and says that it is at record %d", r.head)
	case err != nil:
		return err
	case uint64(seq) != r.head && r.base <= r.head: // else what is behind the last one was dropped before it was shipped
		return refused("records", "its last record is %d, and it says that it is at record %d", seq, r.head)
	case !bytes.Equal(sum, r.sum):
		return refused("records", "record %d has another sum", seq)
	}
	return nil
}

// another returns the error for a row that has another last record than the session here: a [*FencedError] if somebody
// else continued the session, which takes that all of it can be fetched, else a [*SessionError].
func (s *shipping) another(ctx context.Context, r *row) error {
	x := s.found(r)
	if s.doubted == nil || s.doubted.head != r.head || !bytes.Equal(s.doubted.sum, r.sum) { // else it was fetched for this
		err := s.session.fleet.Believe(ctx, x)
		if err == nil {
			err = inFolder(func(dir writer.FS) error {
				_, err := s.session.fleet.Fetch(ctx, x, dir)
				return err
			})
		}
		if err == nil {
			return &FencedError{ID: x.ID, Host: r.host, Common: min(s.note.Seq, r.head), Head: r.head}
		}
		if !errors.As(err, &s.doubt) {
			return err
		}
		s.doubted = r
	}
	return s.doubt
}

// found is the session as a row has it.
func (s *shipping) found(r *row) *Found {
	x := &Found{row: *r}
	x.ID, x.Incarnation = s.session.ID(), s.note.Incarnation
	return x
}

// inFolder calls fn with a temporary folder.
func inFolder(fn func(writer.FS) error) error {
	name, err := os.MkdirTemp("", "lopen-pull-")
	if err != nil {
		return writer.NewError("make folder", os.TempDir(), writer.NotCommitted, err)
	}
	defer func() { _ = mount.RemoveAll(name) }()
	dir, err := writer.OpenFS(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(dir)
}
