package carry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// placedDir is where sessions are that were written anew before they come into place.
const placedDir = "placed"

// A Home is the store that an import goes to.
type Home interface {
	// Root returns .lopen, and Project the project's folder.
	Root() writer.FS
	Project() writer.FS
	// Lock takes the store lock until release is called.
	Lock(ctx context.Context) (release func(), err error)
	// Settle sets As and Here of each claim. Nobody else gets the IDs from then on. The caller
	// has the lock.
	Settle(claims []Claim) error
	// Checkpoints opens the checkpoints; there were objects.
	Checkpoints() (cps *checkpoint.Store, closes func() error, err error)
	// MakeWay moves a session that nobody holds to another folder below Root, if there is one of
	// that ID. back brings it back. The caller has the lock.
	MakeWay(id session.ID, to string) (back func() error, err error)
	// CreatePlan writes a new plan. The error wraps fs.ErrExist if there is one.
	CreatePlan(module string, content []byte) error
}

// A Claim is a session that comes.
type Claim struct {
	ID session.ID
	At session.Mark
	// As is the ID that it gets: its own if that is free. If a session here has all of it
	// already, As is that one and Here its last record.
	As   session.ID
	Here uint64
	// Over says that it takes the place of a session with its ID.
	Over bool
	// Covered reports whether a session's folder has all of it.
	Covered func(dir writer.FS) (bool, error)
}

// Place puts what was received in place: first the objects, then the checkpoints, then the
// sessions, each durable before the next. A crash leaves whole sessions or none, with all that
// they need. After an error nothing is visible, unless it says otherwise.
func (r *Received) Place(ctx context.Context, home Home) error {
	fresh, err := r.settle(ctx, home)
	if err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	if err := r.anew(ctx, home); err != nil {
		return err
	}
	if r.batch != nil {
		if err := r.batch.Commit(); err != nil {
			return err
		}
	}
	return r.reveal(ctx, home)
}

// settle finds out which sessions are here already, and gives the others their IDs.
func (r *Received) settle(ctx context.Context, home Home) (fresh bool, err error) {
	release, err := home.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	claims := make([]Claim, len(r.Sessions))
	for i := range r.Sessions {
		a := &r.Sessions[i]
		if claims[i].ID, err = session.ParseID(a.Was); err != nil {
			return false, err
		}
		claims[i].Over = r.over
		claims[i].At, claims[i].Covered = a.at, func(here writer.FS) (bool, error) {
			dir, err := r.session(a.Was)
			if err != nil {
				return false, err
			}
			defer dir.Close()
			return covers(here, dir, a.at)
		}
	}
	if err := home.Settle(claims); err != nil {
		return false, err
	}
	for i, c := range claims {
		a := &r.Sessions[i]
		a.ID, a.Here, a.Known = c.As.String(), c.Here, c.Here > 0
		fresh = fresh || !a.Known
	}
	r.kept = slices.DeleteFunc(r.kept, func(at string) bool { return isHere(home.Root(), at) })
	return fresh || len(r.kept) > 0, nil
}

// staged returns where the folder of a session is in the staging folder.
func (a *Arrival) staged() string {
	if a.anew {
		return placedDir + "/" + a.ID
	}
	return sessionsDir + "/" + a.Was
}

// anew writes those sessions anew that get another ID, that come from one which has another ID,
// whose settings name the project's folder, that worked in a linked work tree, or with a rewind that
// was not ended.
func (r *Received) anew(ctx context.Context, home Home) error {
	paths, ids := [2]string{r.header.Project.Path, home.Project().Name()}, map[string]string{}
	for i := range r.Sessions {
		if a := &r.Sessions[i]; a.ID != a.Was {
			ids[a.Was] = a.ID
		}
	}
	for i := range r.Sessions {
		a := &r.Sessions[i]
		if a.Known {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", opImport, context.Cause(ctx))
		}
		a.Paths = a.names(paths)
		a.Paths = a.Paths && !r.exact
		if a.anew = a.ID != a.Was || !r.exact && (a.Paths || a.Rewind != "" || a.Worktree != "" || a.turn || ids[a.origin] != ""); !a.anew {
			continue
		}
		if err := r.rewrite(a, paths, ids); err != nil {
			return fmt.Errorf("%s session %s as %s: %w", opImport, a.Was, a.ID, err)
		}
	}
	return r.target.Staging.Sync()
}

// names reports whether the command or the check that the session's next run starts names the
// project's folder.
func (a *Arrival) names(paths [2]string) bool {
	if len(paths[0]) < 2 || paths[0] == paths[1] {
		return false
	}
	for _, word := range append([]string{a.settings.Check}, a.settings.Command...) {
		if moved(word, paths[0], paths[1]) != word {
			return true
		}
	}
	return false
}

// rewrite writes a session anew.
func (r *Received) rewrite(a *Arrival, paths [2]string, ids map[string]string) error {
	was, err := session.ParseID(a.Was)
	if err != nil {
		return err
	}
	id, err := session.ParseID(a.ID)
	if err != nil {
		return err
	}
	from, err := r.session(a.Was)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := r.target.Staging.sub(a.staged())
	if err != nil {
		return err
	}
	defer to.Close()
	if err := Rewrite(from, to, was, Rewriting{ID: id, Elsewhere: true, Paths: paths, IDs: ids}); err != nil {
		return err
	}
	ld, err := folder.Load(to, id)
	if err != nil {
		return err
	}
	if ld.At.Seq != a.Seq || ld.At.Incarnation != a.at.Incarnation {
		return refused(sessionsDir+"/"+a.Was, "written anew it ends at record %d instead of %d", ld.At.Seq, a.Seq)
	}
	return r.target.Staging.publish(a.staged(), ld.State, ld.At)
}

// Copy writes a session anew into the staging folder, under another ID: its log with all records, its
// snapshots and its output. It is durable when Copy returns nil, but for its name.
func (s *Staging) Copy(from writer.FS, was, id session.ID) (path string, err error) {
	name := placedDir + "/" + id.String()
	to, err := s.sub(name)
	if err != nil {
		return "", err
	}
	defer to.Close()
	if err := Rewrite(from, to, was, Rewriting{ID: id}); err != nil {
		return "", err
	}
	ld, err := folder.Load(to, id)
	if err == nil {
		err = s.publish(name, ld.State, ld.At)
	}
	if err == nil {
		err = s.Sync()
	}
	return s.path(name), err
}

// reveal puts the checkpoints and then the sessions in place. After an error it takes back what
// it did.
func (r *Received) reveal(ctx context.Context, home Home) (err error) {
	release, err := home.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	root := home.Root()
	if err := r.free(root); err != nil {
		return err
	}
	var cps *checkpoint.Store
	if len(r.chains) > 0 {
		var closes func() error
		if cps, closes, err = home.Checkpoints(); err != nil {
			return err
		}
		defer func() { _ = closes() }() // what was written is durable
	}
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
	}()
	for _, c := range r.chains {
		b, err := cps.Bring(ctx, c.data, c.name != checkpoint.MainTree)
		if err != nil {
			return err
		}
		r.Apart = r.Apart || b.Apart()
		undo = append(undo, func() error { return b.Undo(context.WithoutCancel(ctx)) })
	}
	for i := range r.Sessions {
		a := &r.Sessions[i]
		if a.Known {
			continue
		}
		back, err := r.makeWay(home, a)
		if err != nil {
			return err
		}
		undo = append(undo, back)
		from, to := r.target.Staging.path(a.staged()), sessionsDir+"/"+a.ID
		if err := root.Rename(from, to); err != nil {
			return writer.NewError(opImport, filepath.Join(root.Name(), to), writer.NotCommitted, err)
		}
		undo = append(undo, func() error { return withdraw(root, to, from) })
	}
	if err := r.putBack(root, func(f func() error) { undo = append(undo, f) }); err != nil {
		return err
	}
	return r.named(root)
}

// replacedDir has the sessions that made way until the staging folder is removed.
const replacedDir = "replaced"

// makeWay moves the session away whose place another one takes.
func (r *Received) makeWay(home Home, a *Arrival) (back func() error, err error) {
	id, err := session.ParseID(a.ID)
	if err != nil || !r.over {
		return func() error { return nil }, err
	}
	if err := r.target.Staging.mkdir(replacedDir); err != nil {
		return nil, err
	}
	return home.MakeWay(id, r.target.Staging.path(replacedDir+"/"+a.ID))
}

// free returns an error if a session has an ID by now that was free.
func (r *Received) free(root writer.FS) error {
	for i := range r.Sessions {
		a := &r.Sessions[i]
		if _, err := root.Lstat(sessionsDir + "/" + a.ID); !a.Known && !r.over && !errors.Is(err, fs.ErrNotExist) {
			return &writer.Error{Op: opImport, Path: filepath.Join(root.Name(), sessionsDir, a.ID), Class: writer.ClassBusy,
				Err: errors.Join(errors.New("somebody else made a session of this ID meanwhile: import again"), err)}
		}
	}
	return nil
}

// named makes the names of the sessions durable.
func (r *Received) named(root writer.FS) error {
	dirs := []string{sessionsDir}
	for i := range r.Sessions {
		if dir := r.target.Staging.path(path.Dir(r.Sessions[i].staged())); !r.Sessions[i].Known && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if err := root.SyncDir(dir); err != nil {
			return writer.NewError(opImport, filepath.Join(root.Name(), dir), writer.NotCommitted, err)
		}
	}
	return nil
}

// withdraw moves a session back that came into place a moment ago. One that somebody holds by
// now stays.
func withdraw(root writer.FS, from, to string) error {
	lease, err := writer.TryLock(root, from+"/"+folder.LeaseFile, writer.OwnerOf(os.Getpid(), opImport))
	if err != nil {
		return fmt.Errorf("%s stays, whole: %w", from, err)
	}
	defer func() { _ = lease.Unlock() }()
	if err := root.Rename(from, to); err != nil {
		return writer.NewError("take back", filepath.Join(root.Name(), from), writer.NotCommitted, err)
	}
	if err := root.SyncDir(sessionsDir); err != nil {
		return writer.NewError("take back", filepath.Join(root.Name(), from), writer.NotDurable, err)
	}
	return nil
}
