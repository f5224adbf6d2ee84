package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A Relation is how the copy of a session that is here compares with the one in the fleet.
type Relation int

// The relations.
const (
	Absent   Relation = iota // it is not here
	Same                     // both have the same records
	Behind                   // what is here is a beginning of what is there
	Ahead                    // what is there is a beginning of what is here
	Diverged                 // both have records that the other one lacks
)

// A Pulled is what a Pull did.
type Pulled struct {
	*carry.Report // nil if nothing was fetched

	ID   session.ID // here
	Was  Relation   // before
	Fork session.ID // has what was done here and not there; zero if there was nothing
}

// Relate compares the copy of a session here with the one in the fleet. common is the last record
// that both have, as far as it is known.
func (f *Fleet) Relate(ctx context.Context, store *lifecycle.Store, x *Found) (rel Relation, common uint64, err error) {
	if store.Incarnation(x.ID) != x.Incarnation {
		return Absent, 0, nil
	}
	dir, err := folderOf(store, x.ID)
	if err != nil {
		return Absent, 0, err
	}
	defer dir.Close()
	log, err := journal.Read(dir, 0, true)
	if err != nil {
		return Absent, 0, err
	}
	n, err := readNote(dir, f.opts.Project, x.Incarnation)
	if err != nil {
		return Absent, 0, err
	}
	here, there := log.Last(), x.row.head
	if here >= there && n.Seq == there && bytes.Equal(n.Sum, x.row.sum) {
		if here == there {
			return Same, there, nil
		}
		return Ahead, there, nil
	}
	same, err := f.sameLine(ctx, x.row.key, log, min(here, there))
	switch {
	case err != nil:
		return Absent, 0, err
	case !same:
		common, err := f.common(ctx, x.row.key, log, min(n.Seq, there), min(here, there))
		return Diverged, common, err
	case here == there:
		return Same, there, nil
	case here < there:
		return Behind, here, nil
	}
	return Ahead, there, nil
}

// common returns the last record that a log and the fleet have in common, between one that they have and
// one that they do not.
func (f *Fleet) common(ctx context.Context, key int64, log *journal.Log, low, high uint64) (uint64, error) {
	for low+1 < high {
		middle := low + (high-low)/2
		same, err := f.sameLine(ctx, key, log, middle)
		if err != nil {
			return 0, err
		}
		if same {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// sameLine reports whether a record of a log is the one of its number in the fleet. Two logs that
// have one record in common have all before it in common: the line says who wrote it when.
func (f *Fleet) sameLine(ctx context.Context, key int64, log *journal.Log, seq uint64) (same bool, err error) {
	if seq == 0 {
		return true, nil
	}
	refs := log.Above(seq - 1)
	if len(refs) == 0 || refs[0].Seq != seq {
		return false, nil
	}
	err = log.Lines(refs[:1], func(_ *journal.Ref, line []byte) error {
		var there []byte
		err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, `SELECT bytes FROM lopen_data.records WHERE session = $1 AND seq = $2 AND pg_catalog.octet_length(bytes) = $3`,
				inBinary, key, int64(seq), len(line)).Scan(&there)
		})
		same = err == nil && bytes.Equal(line, there)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return err
	})
	return same, err
}

// Pull brings a session from the fleet into a store, with the checkpoints on its line and the
// plan of its module if there is none here. It takes the session's lease, and keeps it until the session
// is shipped or the Fleet is closed: nobody else continues it meanwhile. The error is a
// [*HeldError] if somebody does, and a [*SessionError] if its rows cannot be true.
//
// A copy here that is behind makes way. One that diverged gets another ID, with all it has, and says in
// its name where it is from: nothing of either is lost. If the ID is that of another session here,
// the one that comes gets a new ID, and is another session of the fleet once it is shipped.
//
// A crash leaves the copy that was here, or the one that came, whole. After one between two renames the
// copy is brought back when the next session is made or imported.
func (f *Fleet) Pull(ctx context.Context, store *lifecycle.Store, x *Found) (p Pulled, err error) {
	if err := x.row.possible(); err != nil {
		return p, x.doubted(err)
	}
	r, err := f.take(ctx, x.ID.String(), x.row.key, "", 0)
	if err != nil && !errors.Is(err, errUnconfirmed) {
		return p, err
	}
	f.keep(&lease{key: r.key, term: r.term, lost: func() {}})
	defer func() {
		if err != nil {
			err = errors.Join(err, f.giveBack(context.WithoutCancel(ctx), r.key, r.term))
		}
	}()
	x.row = *r
	p.ID = x.ID
	var common uint64
	if p.Was, common, err = f.Relate(ctx, store, x); err != nil {
		return p, err
	}
	if p.Was == Same || p.Was == Ahead {
		return p, nil
	}
	p.Report, err = f.bring(ctx, store, x, p.Was != Absent, func() (err error) {
		if p.Was == Diverged {
			p.Fork, err = f.part(ctx, store, x, common)
		}
		return err
	})
	if p.Was == Absent { // else its records are those of a session, and what is wrong is for a person to see
		err = x.doubted(err)
	}
	if err != nil {
		return p, err
	}
	if p.ID, err = idOf(p.Sessions[0].ID); err != nil || p.ID != x.ID {
		return p, err
	}
	return p, noteIn(store, x.ID, note{Project: f.opts.Project, Incarnation: x.Incarnation, Seq: r.head, Sum: r.sum, Secret: f.secret, Term: r.term})
}

// noteIn writes the note of a session that nobody ships.
func noteIn(store *lifecycle.Store, id session.ID, n note) error {
	dir, err := folderOf(store, id)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := folder.WriteSmall(dir, noteFile, n); err != nil {
		return err
	}
	return folder.MoveCursor(dir, cursorName, n.Seq)
}

// part copies what is here of a session that somebody else continued under another ID, and names it. It
// does so once.
func (f *Fleet) part(ctx context.Context, store *lifecycle.Store, x *Found, common uint64) (id session.ID, err error) {
	dir, err := folderOf(store, x.ID)
	if err != nil {
		return id, err
	}
	defer dir.Close()
	n, err := readNote(dir, f.opts.Project, x.Incarnation)
	if err != nil {
		return id, err
	}
	if id, err = session.ParseID(n.Fork); err == nil && store.Incarnation(id) != "" {
		return id, nil
	}
	if id, err = store.Copy(ctx, x.ID); err != nil {
		return id, err
	}
	name := fmt.Sprintf("%s as %s had it when %s took it", x.ID, f.opts.Host, x.Host)
	if common > 0 {
		name += fmt.Sprintf(" at record %d", common)
	}
	if err := store.SetMeta(ctx, id, func(m *lifecycle.Meta) error { m.Name = name; return nil }); err != nil {
		return id, err
	}
	store.Logger(x.ID).Info().Str("fork", id.String()).Str("host", x.Host).Uint64("common", common).Msg("the session diverged; what was done here is kept as a fork")
	if err := noteIn(store, id, note{Project: f.opts.Project, Incarnation: store.Incarnation(id), Parted: x.ID.String()}); err != nil {
		return id, err
	}
	n.Fork, n.Fenced = id.String(), x.Host
	return id, folder.WriteSmall(dir, noteFile, n)
}

// Parted returns the session that somebody else continued, if a session here is the fork that has what
// was done here meanwhile; else "".
func (f *Fleet) Parted(store *lifecycle.Store, id session.ID) string {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return ""
	}
	defer root.Close()
	dir, err := writer.OpenDir(root, folder.Path(id))
	if err != nil {
		return ""
	}
	defer dir.Close()
	n, err := readNote(dir, f.opts.Project, store.Incarnation(id))
	if err != nil {
		return ""
	}
	return n.Parted
}

// Part keeps what was done here of a session that somebody else continued, as a fork. It returns the
// zero ID if there is nothing that the fleet lacks. Nobody has the session open.
func (f *Fleet) Part(ctx context.Context, store *lifecycle.Store, id session.ID) (fork session.ID, err error) {
	all, err := f.List(ctx, id.Module)
	if err != nil {
		return fork, err
	}
	incarnation := store.Incarnation(id)
	i := slices.IndexFunc(all, func(x Found) bool { return x.ID == id && x.Incarnation == incarnation })
	if i < 0 {
		return fork, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	x := all[i]
	rel, common, err := f.Relate(ctx, store, &x)
	if err != nil || rel != Diverged {
		return fork, err
	}
	return f.part(ctx, store, &x, common)
}

// bring imports a session. ready is called when all of its log is here and adds up.
func (f *Fleet) bring(ctx context.Context, store *lifecycle.Store, x *Found, over bool, ready func() error) (*carry.Report, error) {
	var report *carry.Report
	err := inFolder(func(dir writer.FS) (err error) {
		report, err = f.bringBy(ctx, store, x, over, dir, ready)
		return err
	})
	return report, err
}

// bringBy is bring by a temporary folder.
func (f *Fleet) bringBy(ctx context.Context, store *lifecycle.Store, x *Found, over bool, dir writer.FS, ready func() error) (*carry.Report, error) {
	ld, err := f.Fetch(ctx, x, dir)
	if err != nil {
		return nil, err
	}
	src, err := f.source(ctx, store, x, dir, ld)
	if err != nil {
		return nil, err
	}
	defer src.close()
	if err := ready(); err != nil {
		return nil, err
	}
	// A rewind, or a turn of an agent, that was in progress elsewhere is not for this machine to end: the
	// session comes as it was before, as another one.
	if ld.At.Rewinding != nil || ld.State.Header().Holder != nil {
		return store.Import(ctx, src)
	}
	report, err := store.Import(ctx, carry.Exact{Source: src, Over: over})
	if err != nil && report == nil {
		return nil, fmt.Errorf("pull session %s: %w", x.ID, err)
	}
	return report, err
}
