package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/plain"
)

// others are the small files of a session that repair does not know.
var others = []repair.File{
	{Name: metaFile, Check: func(dir writer.FS) error { return folder.ReadSmall(dir, metaFile, &Meta{}) }},
	{Name: recoveryFile, Check: func(dir writer.FS) error { return folder.ReadSmall(dir, recoveryFile, &repair.Note{}) }},
}

// recoveryFile is in the folder of a recovered session.
const recoveryFile = "recovery.json"

// Verify reads all files of a session, without a lock, and changes nothing. While a writer
// is live the end of its journal may look torn for a moment; Verify then reads it again.
// Damage is in the report. The error is for a session that is missing or whose holder
// cannot be found out.
func (s *Store) Verify(id session.ID) (repair.Report, error) {
	r := repair.Report{ID: id}
	dir, err := s.sessionDir(id)
	if err != nil {
		return r, fmt.Errorf("verify session %s: %w", id, err)
	}
	defer dir.Close()
	for range folder.Tries {
		holder, err := s.Holder(id)
		if err != nil {
			return r, err
		}
		r = repair.Verify(repair.Subject{ID: id, Dir: dir, Holder: holder, Others: others})
		s.verifyChain(&r)
		if r.Condition == repair.Intact || holder == nil {
			break
		}
	}
	return r, nil
}

func (s *Store) verifyChain(r *repair.Report) {
	cps, chain, err := s.chainOf(r.ID)
	if err != nil {
		r.CheckChain(nil, err)
		return
	}
	defer cps.Close()
	r.CheckChain(chain, nil)
	r.CheckMoved(chain, s.root())
}

// chainOf opens the checkpoints, and returns the chain in which a session made entries; the
// project's if it made none. It does not ask the session, which may be damaged.
func (s *Store) chainOf(id session.ID) (*Checkpoints, *checkpoint.Store, error) {
	cps, err := s.Checkpoints(nil)
	if err != nil {
		return nil, nil, err
	}
	others, err := cps.Others()
	if err != nil {
		return nil, nil, errors.Join(err, cps.Close())
	}
	for _, chain := range append([]*checkpoint.Store{cps.Store}, others...) {
		all, _, err := chain.List() // the caller finds out what is wrong with the chain that counts
		if err == nil && !chain.Imported() && slices.ContainsFunc(all, func(e *checkpoint.Entry) bool { return e.Session == id.String() }) {
			return cps, chain, nil
		}
	}
	return cps, cps.Store, nil
}

// VerifyData reads every blob that the checkpoints of the report's session need, and adds
// damaged and missing ones to the report. It may read many bytes.
func (s *Store) VerifyData(ctx context.Context, r *repair.Report) error {
	if r == nil || ctx == nil {
		return absent("verify", s.Path(), "report or context")
	}
	cps, chain, err := s.chainOf(r.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer cps.Close()
	return r.CheckData(ctx, chain, cps.blobs, s.Path())
}

// VerifyBlobs reads every blob of the store, whether a checkpoint needs it or not, and
// returns their number and the damaged ones.
func (s *Store) VerifyBlobs(ctx context.Context) (n int, damaged []repair.Fault, err error) {
	if ctx == nil {
		return 0, nil, absent("verify", s.Path(), "context")
	}
	root, err := writer.OpenDir(s.root(), blobsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer root.Close()
	return repair.CheckBlobs(ctx, blob.New(root), s.Path())
}

// Recover makes a new session from a damaged one and does not change the damaged one. name
// is that of a session, or of a folder in corrupted/. [repair.Recover] documents the
// strategies; "" chooses the one that saves most. With dryRun Recover only returns what it
// would do. The new session has the name and the pin of the damaged one and the part of the
// conversation that its log still has. It requires validation until [Store.Accept]. A crash
// leaves no new session or the whole one.
//
// The error wraps a [*BusyError] if the session is held, ErrNotFound if there is none of that
// name, and ErrCorrupt if the strategy finds nothing to recover; then the Recovery is returned
// as well.
func (s *Store) Recover(ctx context.Context, name, strategy string, dryRun bool) (*repair.Recovery, error) {
	id, where, err := s.findDamaged(name)
	if err != nil {
		return nil, err
	}
	r, err := s.recover(ctx, id, where, strategy, dryRun)
	if err != nil {
		err = fmt.Errorf("recover session %s: %w", id, err)
	}
	return r, err
}

func (s *Store) recover(ctx context.Context, id session.ID, where, strategy string, dryRun bool) (*repair.Recovery, error) {
	dir, err := writer.OpenDir(s.root(), where)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := free(dir); err != nil {
		return nil, err
	}
	cps, chain, err := s.chainOf(id)
	if err == nil {
		defer cps.Close()
	} else if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	report := repair.Verify(repair.Subject{ID: id, Dir: dir, Others: others})
	r, err := repair.Recover(dir, where, strategy, report, chain)
	if err != nil {
		return r, err
	}
	meta := takeMeta(dir, r)
	p, _ := s.Plan(id.Module) // without a plan there is no advice about its tasks
	r.Advise(p, PlanPath(id.Module))
	if dryRun {
		return r, nil
	}
	return r, s.makeRecovered(ctx, dir, r, meta)
}

// free returns a [*BusyError] if the session of a folder is held. A lock file that is not a
// regular file is damage and no lock.
func free(dir writer.FS) error {
	owner, held, err := writer.Holder(dir, leaseFile)
	if held {
		return &BusyError{Path: filepath.Join(dir.Name(), leaseFile), Owner: owner}
	}
	if errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}

// takeMeta reads the name and the pin of the damaged session for the new one, so that a person
// finds the new session under the known name. The damaged session keeps both.
func takeMeta(dir writer.FS, r *repair.Recovery) Meta {
	m, err := readMeta(dir, metaFile)
	if err != nil {
		r.Lost = append(r.Lost, "its name and whether it is pinned: "+err.Error())
		return Meta{}
	}
	if m.Name != "" {
		r.Recovered = append(r.Recovered, fmt.Sprintf("its name: %s", m.Name))
	}
	if m.Pinned {
		r.Recovered = append(r.Recovered, "it is pinned")
	}
	return m
}

// makeRecovered makes the new session and releases it.
func (s *Store) makeRecovered(ctx context.Context, from writer.FS, r *repair.Recovery, meta Meta) error {
	c, err := s.make(ctx, r.From.Module, first{
		event: record.EventRecovered,
		share: func(to string) (session.Mark, error) { return s.share(from, r.Where, to, r.Conversation()) },
		others: func(dir writer.FS) error {
			if meta != (Meta{}) {
				if err := folder.WriteSmall(dir, metaFile, meta); err != nil {
					return err
				}
			}
			return folder.WriteSmall(dir, recoveryFile, r.Note(s.opts.Now()))
		},
		state: r.First,
	})
	if err != nil {
		r.ID = session.ID{}
		return err
	}
	s.noteRecovered(r.Where, r.ID)
	s.Logger(r.ID).Info().Stringer("from", r.From).Str("strategy", r.Strategy).Uint64("seq", r.Seq).Msg("session recovered")
	return c.Close()
}

// findDamaged finds the session of a name and its folder: in sessions/, or in corrupted/. Of
// several in corrupted/ it returns the newest.
func (s *Store) findDamaged(name string) (session.ID, string, error) {
	id, err := s.Resolve(name)
	if bad, ok := errors.AsType[*DamagedError](err); ok {
		return bad.ID, bad.Where, nil
	}
	return id, sessionsDir + "/" + id.String(), err
}

// Accept records that a person has validated a recovered session. It changes nothing if the
// session does not require validation.
func (s *Store) Accept(ctx context.Context, id session.ID) error {
	sess, err := s.openIn(ctx, id)
	if err != nil {
		return err
	}
	if sess.State().Header().RequiresValidation {
		err = sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.Header().RequiresValidation = false
			return nil
		})
	}
	err = errors.Join(err, sess.Close(ctx))
	if err == nil {
		sess.log.Info().Msg("session accepted")
	}
	return err
}

// An Edit is what was changed in a session's files outside.
type Edit struct {
	Changes []string          // operations with their numbers, named as in the log
	Rules   []session.Finding // rules that the edited State breaks
}

// AcceptEdit accepts the edit of a session's files: the change becomes a record of the
// journal, and both files are written again with their checksums. A crash leaves the session
// edited or accepted. With dryRun AcceptEdit only returns the edit. If the session was not
// edited, the error has class invalid and nothing is changed.
func (s *Store) AcceptEdit(id session.ID, dryRun bool) (Edit, error) {
	return s.endEdit(id, "accept edit", dryRun, false)
}

// DiscardEdit quarantines the edited files in the session's folder and writes the files again
// from the journal. In all else it is like AcceptEdit.
func (s *Store) DiscardEdit(id session.ID, dryRun bool) (Edit, error) {
	return s.endEdit(id, "discard edit", dryRun, true)
}

func (s *Store) endEdit(id session.ID, op string, dryRun, discard bool) (Edit, error) {
	edit, err := s.findEdit(id, op)
	if err == nil && !dryRun {
		err = s.settleEdit(id, discard)
	}
	if err != nil {
		return edit, fmt.Errorf("%s of session %s: %w", op, id, err)
	}
	if !dryRun {
		s.Logger(id).Info().Strs("changes", edit.Changes).Msg(map[bool]string{false: "edit accepted", true: "edit discarded"}[discard])
	}
	return edit, nil
}

// findEdit returns what was edited, without a lock.
func (s *Store) findEdit(id session.ID, op string) (edit Edit, err error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return edit, err
	}
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	if err != nil {
		return edit, damagedIn(id, folder.Path(id), err)
	}
	if ld.Unedited == nil {
		return edit, &Error{Op: op, Path: dir.Name(), Class: writer.ClassInvalid, Err: errors.New("it was not edited outside")}
	}
	edit.Rules = ld.Findings()
	counts := wire.CountChanges(ld.Unedited, ld.State)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		edit.Changes = append(edit.Changes, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return edit, nil
}

// settleEdit reads the session again, under its lease, and accepts or discards the edit.
func (s *Store) settleEdit(id session.ID, discard bool) error {
	held, err := s.hold(id, true)
	if err != nil {
		return err
	}
	edited := held.Contents.State
	if discard {
		held.Contents.Discard()
		edited = nil
	}
	c, err := commit.Open(held, record.EventRecovered, s.committing(id))
	if err != nil {
		return err
	}
	return errors.Join(c.Show(edited), c.Close())
}

// Preflight checks what a run needs of the store before it begins: that it can be written,
// that it belongs to this user alone, and that there is room. It returns the checks that
// failed.
func (s *Store) Preflight() []repair.Check {
	all := []repair.Check{repair.Writing(s.root()), repair.Modes(s.root()), repair.Space(s.root(), commit.LowSpace)}
	return slices.DeleteFunc(all, func(f repair.Check) bool { return f.Mend == "" })
}

// Doctor checks the file system, the time of an fsync, free space, permissions, locks and
// every session. It writes one temporary file and removes it.
func (s *Store) Doctor(ctx context.Context) []repair.Check {
	if ctx == nil {
		return []repair.Check{repair.Failed("doctor", absent("look at store", s.Path(), "context"))}
	}
	all := []repair.Check{repair.FileSystem(s.root()), repair.Sync(s.root()), repair.Space(s.root(), commit.LowSpace), repair.Modes(s.root())}
	lock, unfinished := s.checkLock(ctx)
	all = append(all, lock, s.checkReserve())
	all = append(all, s.checkBytes(), s.checkCheckpoints(), s.checkBackup())
	all = append(append(all, s.checkSessions()...), s.checkTrash()...)
	all = append(append(all, unfinished...), s.checkCorrupted()...)
	return append(all, s.checkContents(ctx)...)
}

// checkContents reads a sample of the contents of checkpoints. It is the last check, and says what
// was not looked at.
func (s *Store) checkContents(ctx context.Context) []repair.Check {
	root, err := writer.OpenDir(s.root(), blobsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []repair.Check{repair.Failed("contents", err)}
	}
	defer root.Close()
	return []repair.Check{repair.Sample(ctx, blob.New(root), s.Path())}
}

// checkCorrupted reports the damaged sessions from which no session was recovered.
func (s *Store) checkCorrupted() (all []repair.Check) {
	lost, err := s.Quarantined()
	if err != nil {
		return []repair.Check{repair.Failed(corruptedDir, err)}
	}
	for _, i := range lost {
		if o, err := s.Abandoned(i.ID); err == nil && o != nil {
			all = append(all, repair.Orphaned(i.ID, o))
		}
		all = append(all, repair.Check{Name: i.ID.String(), Found: i.Err.Error(), Mend: "lopen session recover " + i.ID.String()})
	}
	return all
}

// checkBytes reports how many bytes each folder takes, as du counts them.
func (s *Store) checkBytes() repair.Check {
	var parts []string
	for _, name := range []string{sessionsDir, checkpointsDir, blobsDir, "moved", trashDir, corruptedDir, "cache"} {
		if n := s.diskBytes(name, false); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f MiB", name, float64(n)/(1<<20)))
		}
	}
	return repair.Check{Name: "bytes", Found: strings.Join(parts, ", ")}
}

// checkCheckpoints reports what the checkpoints take, to the byte.
func (s *Store) checkCheckpoints() repair.Check {
	f := repair.Check{Name: "checkpoints"}
	u, err := s.CheckpointUsage()
	if err != nil {
		return repair.Failed(f.Name, err)
	}
	f.Found = fmt.Sprintf("%d, in %d bytes of contents and %d bytes of their chain", u.Checkpoints, u.Blobs, u.Chain)
	if u.Moved > 0 {
		f.Found += fmt.Sprintf("; %d bytes of files that rewinds moved away", u.Moved)
	}
	if u.Unneeded > 0 {
		f.Found += fmt.Sprintf("; %d bytes of the contents are of none of them, in packs that are at least half needed or wait for the next prune", u.Unneeded)
	}
	return f
}

// checkLock takes the store lock for a moment, and reports the lock and, as nobody creates a
// session meanwhile, the creations that were interrupted.
func (s *Store) checkLock(ctx context.Context) (f repair.Check, unfinished []repair.Check) {
	f = repair.Check{Name: "store lock", Found: "free"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lock, err := s.lock(ctx)
	if err != nil {
		f.Found, f.Problem, f.Mend = err.Error(), true, "wait for the holder, or end it"
		return f, nil
	}
	unfinished = append(repair.Unfinished(s.root(), s.opts.Now()), carry.Interrupted(s.root(), s.opts.Now())...)
	if err := lock.Unlock(); err != nil {
		return repair.Failed(f.Name, err), unfinished
	}
	return f, unfinished
}

func (s *Store) checkReserve() repair.Check {
	f := repair.Check{Name: "reserve", Found: fmt.Sprintf("%d MiB, given up on a full disk for one more save", commit.ReserveBytes>>20)}
	if !s.reserve.Whole() {
		f.Found, f.Mend = "none: a full disk stops saving at once", "it is made when a session is opened and there is room"
	}
	return f
}

// checkSessions reports each session with a problem, and the others in one line.
func (s *Store) checkSessions() []repair.Check {
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return []repair.Check{repair.Failed("sessions", err)}
	}
	slices.SortFunc(folders, func(a, b sessionFolder) int { return strings.Compare(a.name, b.name) })
	var all []repair.Report
	for _, f := range folders {
		if r, err := s.Verify(f.id); err == nil { // else the session was removed meanwhile
			all = append(all, r)
		}
	}
	return repair.Sessions(all)
}

// staleBackup is the age from which doctor warns of the newest backup.
const staleBackup = 7 * 24 * time.Hour

// checkBackup says how old the newest backup is.
func (s *Store) checkBackup() repair.Check {
	c := repair.Check{Name: "backup", Found: "none was made with lopen backup FOLDER"}
	all, err := s.Backups()
	switch {
	case errors.Is(err, ErrNotFound):
		return c
	case err != nil:
		c = repair.Failed(c.Name, err)
		c.Mend = "the next lopen backup FOLDER writes it anew"
		return c
	}
	n := all[0]
	age := s.opts.Now().Sub(n.At)
	c.Found = fmt.Sprintf("%s ago, number %d in %s", age.Round(time.Minute), n.Number, n.Folder)
	if days := int(age.Hours() / 24); days > 1 {
		c.Found = fmt.Sprintf("%d days ago, number %d in %s", days, n.Number, n.Folder)
	}
	if age > staleBackup {
		c.Mend = "lopen backup " + plain.Quote(n.Folder)
	}
	return c
}
