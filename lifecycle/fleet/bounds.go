package fleet

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// What is read of the database at most. Whoever may write to it can have any row there: a statement asks for no
// more than this, by functions that nobody else made, and what comes is measured again. Contents are in chunks of exactly chunkBytes.
const (
	maxHost    = 255                     // bytes of the name of a machine
	maxSummary = 8 << 10                 // bytes of what a listing shows of a session
	maxListed  = 10_000                  // sessions, or plans, of a listing, and
	maxSum     = 16 << 20                // bytes of their summaries
	maxRecord  = journal.MaxBody + 4<<10 // bytes of a record, with what seals it
	maxNames   = 100_000                 // files of a session, and its checkpoints
	maxName    = 1 << 10                 // bytes of the name of one
	maxLines   = 256 << 10               // bytes of what a chain has of a checkpoint, and
	maxChains  = 16 << 20                // of all of them
	maxObjects = 500_000                 // objects of a session
	maxHash    = 33                      // bytes of a hash, so that a longer one is none
	// maxTasks bounds a plan, and the State of a session: a run holds some 3 KB of each task.
	maxTasks = 10_000
	// maxPlan and maxPlanLines bound a plan: to parse one takes up to sixty times its bytes.
	maxPlan      = 512 << 10
	maxPlanLines = 20_000
	// maxState bounds the snapshot of a State, in bytes before compression: to read one takes up to twelve times as many.
	maxState = 4 << 20
)

// errManyTasks means that a session has more tasks than one of a fleet may have.
var errManyTasks = fmt.Errorf("a session in a fleet has at most %d tasks", maxTasks)

// snapshotFits returns an error for a snapshot in a session's folder that is larger than one of a fleet may be.
func snapshotFits(dir writer.FS, id history.ID) error {
	m, err := history.ReadManifest(dir, id)
	if err == nil && m.Bytes > maxState {
		err = refused(history.Path(dir, id), "the snapshot has %d bytes, and one of a fleet has at most %d", m.Bytes, maxState)
	}
	return err
}

// at is a column of times, as one that can be reckoned with: infinity is among what a column may have.
func at(column string) string {
	return `least(greatest(` + column + `, '2000-01-01 00:00:00Z'::timestamptz), pg_catalog.clock_timestamp() + interval '100 years')`
}

// msUntil and msSince are the milliseconds until the time of a column, and since then.
func msUntil(column string) string {
	return `(extract(epoch FROM ` + at(column) + ` - pg_catalog.clock_timestamp()) * 1000)::bigint`
}

func msSince(column string) string { return `-` + msUntil(column) }

// within is a column of bytes if it has at most so many, else null.
func within(column string, most int) string {
	return fmt.Sprintf(`CASE WHEN pg_catalog.octet_length(%[1]s) <= %[2]d THEN %[1]s END`, column, most)
}

// refused is the error for something in the database that is larger than it may be, or that does not fit.
func refused(what, format string, args ...any) error {
	return &writer.Error{Op: "read from the fleet", Path: what, Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
}

// misread adds the table to an error of reading a row: the driver names a column alone.
func misread(table string, err error) error {
	if errors.As(err, new(pgx.ScanArgError)) {
		return refused("table "+table, "it has a row that is none of lopen: %w", err)
	}
	return err
}

// each calls fn with each row of an answer, at most some, and reports whether there were more.
func each(rows pgx.Rows, most int, fn func(pgx.Rows) error) (more bool, err error) {
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		if n == most {
			return true, nil
		}
		if err := fn(rows); err != nil {
			return false, err
		}
	}
	return false, rows.Err()
}
