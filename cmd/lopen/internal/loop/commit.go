package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// Repository is the project's own repository; see [repo.Repository] for what each call
// promises.
type Repository interface {
	// Begin has git run from now on what it runs at this moment. changed gets the names of what is another
	// one when git is started later.
	Begin(ctx context.Context, changed func(names []string)) error
	Head(ctx context.Context) (repo.Head, error)
	Differing(ctx context.Context) ([]string, error)
	Switch(ctx context.Context, branch string) error
	CommitFiles(ctx context.Context, c repo.Commit) (repo.Made, error)
	Find(ctx context.Context, base, session, task string) (string, error)
	Refresh(ctx context.Context, hash string) (unstaged []string, err error)
	Since(ctx context.Context, base string, paths []string) ([]string, error)
	Has(ctx context.Context, commit string) (bool, error)
	Unstage(ctx context.Context, paths []string) error
}

// maxHeld bounds how many files may differ from HEAD when a run that commits begins: their
// names are in the State.
const maxHeld = 1000

// What an artifact of an attempt says of its commit; see [CommitOf].
const (
	artifactCommit   = "commit "
	artifactOwn      = "own commit "
	artifactNoCommit = "no commit: "
)

// commits are the commits of a run: which files are whose. Owned by the runner.
type commits struct {
	branch  string                     // to commit on; "" is that of HEAD
	on      string                     // branch of HEAD when the run last looked
	shown   string                     // the same as the State has it
	touched map[string]map[string]bool // by unit: the paths that its attempts changed since it was begun anew
	begun   map[string]string          // by unit: HEAD before the first of these attempts
	// own are the paths that tasks of the session changed and that nobody changed since. held
	// are those that differed from HEAD before that: they are not committed. held has redacted
	// paths.
	own, held map[string]bool
}

// beginCommits makes the run one that commits: it finds the commit that a killed run made or
// has to make, and which files differ from HEAD already.
func (r *runner) beginCommits(ctx context.Context, past *lifecycle.Past) error {
	old := r.sess.State().Header()
	if !r.cfg.Commit {
		if old.Commits == nil {
			return nil
		}
		return r.rememberCommits(nil)
	}
	r.commits = commits{touched: map[string]map[string]bool{}, begun: map[string]string{}, own: map[string]bool{}, held: map[string]bool{}}
	c := &r.commits
	err := r.onBranch(ctx)
	if err == nil { // a branch may have a configuration of its own
		err = r.cfg.Repository.Begin(ctx, r.sayChanged)
	}
	if err != nil {
		return r.cannotCommit(ctx, err)
	}
	pending := ""
	if old.Commits != nil {
		pending = old.Commits.Pending
		for unit, paths := range past.Touched {
			c.touch(unit, past.Begun[unit], paths...)
		}
		c.own = past.Left
		r.noteChanges(old.ActiveTask, old.Git.Head, past.Cut)
		for _, path := range old.Commits.Held {
			c.held[path] = true
		}
	}
	if t, ok := r.sess.State().Task(pending); !ok || t.State != session.TaskComplete {
		pending = ""
	}
	hash, err := r.findPending(ctx, pending, old.Git.Head)
	if err == nil {
		err = r.holdDiffering(ctx)
	}
	if err != nil {
		return r.cannotCommit(ctx, err)
	}
	if len(c.held) > 0 {
		r.cfg.UI.Warn("not committed by this run, because it differs from HEAD as the run begins: %s", list(slices.Sorted(maps.Keys(c.held))))
	}
	if pending == "" {
		return r.rememberCommits(c.state(""))
	}
	leaves := tasks.Leaves(r.sess.State(), pending)
	if hash != "" {
		r.cfg.UI.Say("committed by the last run: %s, %s", r.name(pending), shortHash(hash))
		return r.committed(leaves, []string{artifactCommit + hash})
	}
	r.cfg.UI.Say("%s is done, and the last run ended before it was committed", r.name(pending))
	return r.commit(ctx, pending, leaves)
}

// sayChanged names once what is not what git ran when the run began, and says what becomes of that.
func (r *runner) sayChanged(names []string) {
	var fresh []string
	for _, name := range names {
		if key := "since the begin: " + name; !r.warned[key] {
			r.warned[key], fresh = true, append(fresh, r.quote(name))
		}
	}
	if len(fresh) > 0 {
		r.cfg.UI.Warn("not as git had it when the run began: %s; commits are made without hooks, with the filters, attributes and names of then", list(fresh))
	}
}

// onBranch puts HEAD on the branch that the run commits on.
func (r *runner) onBranch(ctx context.Context) error {
	c := &r.commits
	if r.cfg.Branch {
		c.branch = BranchOf(r.sess.State().ID())
		if err := r.cfg.Repository.Switch(ctx, c.branch); err != nil {
			return err
		}
		r.git = r.gitState(ctx)
	}
	head, err := r.cfg.Repository.Head(ctx)
	if c.on, c.shown = head.Branch, r.sess.Redact(head.Branch); err == nil && c.on == "" {
		err = errors.New("HEAD is detached")
	}
	return err
}

// findPending returns the commit that a killed run made of a unit, "" if there is none, and
// brings the index up to date for it.
func (r *runner) findPending(ctx context.Context, unit, base string) (string, error) {
	if unit == "" {
		return "", nil
	}
	hash, err := r.cfg.Repository.Find(ctx, base, r.sess.State().ID().String(), r.shownID(unit))
	if err != nil && ctx.Err() == nil && base != "" { // after a clone, perhaps, the old HEAD is not there
		hash, err = r.cfg.Repository.Find(ctx, "", r.sess.State().ID().String(), r.shownID(unit))
	}
	if err != nil || hash == "" {
		return "", err
	}
	unstaged, err := r.cfg.Repository.Refresh(ctx, hash)
	if err != nil {
		r.cfg.UI.Warn("the index is not up to date: %s", r.quote(err.Error()))
	} else {
		r.sayUnstaged(unstaged)
	}
	return hash, nil
}

// cannotCommit ends a run that was to commit and cannot.
func (r *runner) cannotCommit(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return r.interrupted()
	}
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, fmt.Sprintf("--commit: %s; mend it, then %s", r.quote(err.Error()), r.resumeHint())})
}

// BranchPrefix begins the name of the branch of a session's own.
const BranchPrefix = "lopen/"

// BranchOf returns the branch of a session.
func BranchOf(id session.ID) string { return BranchPrefix + id.String() }

// touch adds paths that a unit changed. head is HEAD before its first attempt.
func (c *commits) touch(unit, head string, paths ...string) {
	if c.touched[unit] == nil {
		c.touched[unit], c.begun[unit] = map[string]bool{}, head
	}
	for _, path := range paths {
		c.touched[unit][path] = true
	}
}

// state returns what the State has to remember. pending is the unit that has no commit yet.
func (c *commits) state(pending string) *session.Commits {
	return &session.Commits{Branch: c.shown, Pending: pending, Held: slices.Sorted(maps.Keys(c.held))}
}

// pathKey is a path as the State has it.
func (r *runner) pathKey(path string) string {
	return strings.ToValidUTF8(r.sess.Redact(path), "\ufffd")
}

// noteChanges notes what an attempt at a unit changed. head is HEAD before the attempt.
func (r *runner) noteChanges(unit, head string, changes []files.Change) {
	c := &r.commits
	if !r.cfg.Commit || unit == "" {
		return
	}
	c.touch(unit, head)
	for _, f := range changes {
		if _, unstored := f.Unstored(); unstored != "" {
			continue // git ignores it, or would add all that is in it
		}
		for _, path := range []string{f.Path, f.From} {
			if path != "" {
				c.touched[unit][path], c.own[path] = true, true
			}
		}
	}
}

// holdDiffering finds out which files differ from HEAD, and holds those that are not the
// session's own.
func (r *runner) holdDiffering(ctx context.Context) error {
	paths, err := r.cfg.Repository.Differing(ctx)
	if err != nil {
		return err
	}
	c := &r.commits
	was := c.held
	c.held = map[string]bool{}
	for _, path := range paths {
		if inside(path) {
			continue
		}
		if key := r.pathKey(path); was[key] || !c.own[path] {
			c.held[key] = true
		}
	}
	if len(c.held) > maxHeld {
		return fmt.Errorf("%d files differ from HEAD or are new and not ignored, more than the %d that can be remembered: commit, stash or ignore them", len(c.held), maxHeld)
	}
	return nil
}

// inside reports whether a path is lopen's own.
func inside(path string) bool {
	return path == lifecycle.Dir || strings.HasPrefix(path, lifecycle.Dir+"/")
}

// holdChanged is called before a start of the command, with what changed since the last one.
func (r *runner) holdChanged(ctx context.Context, changes []files.Change) error {
	c := &r.commits
	if !r.cfg.Commit {
		return nil
	}
	for _, f := range changes { // by somebody else
		delete(c.own, f.Path)
		delete(c.own, f.From)
	}
	was := c.held
	err := r.holdDiffering(ctx)
	for path := range c.own { // a stash of the agent's has what the person changed, and comes back
		if key := r.pathKey(path); was[key] {
			c.held[key] = true
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.held = was
		r.warnOnce("differing: "+err.Error(), "which files differ from HEAD is not known: "+r.quote(err.Error()))
		return nil
	}
	if maps.Equal(was, c.held) {
		return nil
	}
	if err := r.rememberCommits(c.state("")); err != nil {
		return err
	}
	return r.sync(ctx)
}

func (r *runner) rememberCommits(c *session.Commits) error {
	return r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().Commits = c
		return nil
	})
}

// toCommit returns which of the files that a unit changed are to be committed, and names the
// others.
func (r *runner) toCommit(unit string) (paths []string) {
	c := &r.commits
	var held []string
	for _, path := range slices.Sorted(maps.Keys(c.touched[unit])) {
		switch {
		case inside(path):
		case c.held[r.pathKey(path)]:
			held = append(held, path)
		default:
			paths = append(paths, path)
		}
	}
	if len(held) > 0 {
		r.cfg.UI.Warn("not committed with %s, because it differed from HEAD before: %s", r.name(unit), list(held))
	}
	return paths
}

// sayAttributes says that a unit changed which of git's filters files go through: what the work tree has of that is a
// part of what is committed, and not of the begin.
func (r *runner) sayAttributes(unit string, paths []string) {
	var changed []string
	for _, name := range paths {
		if path.Base(name) == ".gitattributes" {
			changed = append(changed, r.quote(name))
		}
	}
	if len(changed) > 0 {
		r.cfg.UI.Warn("%s changed %s: from here on files are committed through the filters that this names", r.quote(r.name(unit)), list(changed))
	}
}

// commit commits the files of a unit that is done, and records the commit. What goes wrong
// is said, and the unit stays done.
func (r *runner) commit(ctx context.Context, unit string, leaves []string) error {
	c := &r.commits
	if !r.cfg.Commit {
		return nil
	}
	r.status("the commit, of "+r.name(unit), 0)
	paths := r.toCommit(unit)
	r.sayAttributes(unit, paths)
	artifacts, made, err := r.makeCommit(ctx, unit, leaves, paths)
	if err != nil && r.hooksMended(ctx, unit, paths) {
		if err := r.checkAfterHooks(ctx, unit, leaves, "git diff"); err != nil {
			return err
		}
		artifacts, made, err = r.makeCommit(ctx, unit, leaves, paths)
	}
	if ctx.Err() != nil {
		return r.interrupted() // the next run makes it, or finds it
	}
	if err != nil {
		why := r.quote(err.Error())
		artifacts = append(artifacts, artifactNoCommit+why)
		r.cfg.UI.Warn("no commit of %s, which is done: %s; by hand: %s", r.name(unit), why, byHand(paths, r.subject(unit)))
	}
	r.log.Info().Str("task", unit).Str("commit", made.Hash).Err(err).Msg("task committed")
	if recordErr := r.committed(leaves, artifacts); recordErr != nil || err != nil {
		return recordErr
	}
	for _, path := range paths {
		if made.Index == nil { // else it differs from HEAD by that only
			delete(c.own, path)
		}
	}
	if delete(c.touched, unit); made.Hash == "" {
		return nil
	}
	return r.afterHooks(ctx, unit, leaves, made)
}

// commitHead returns HEAD, if a commit may be made there.
func (r *runner) commitHead(ctx context.Context) (repo.Head, error) {
	c := &r.commits
	head, err := r.cfg.Repository.Head(ctx)
	switch {
	case err != nil:
		return head, err
	case r.filesUnknown:
		return head, errors.New("which files it changed is not known")
	case head.Branch == "":
		return head, fmt.Errorf("HEAD is detached, at %s", shortHash(head.Commit))
	case c.branch != "" && head.Branch != c.branch:
		return head, fmt.Errorf("HEAD is on %s, and this run commits on %s", head.Branch, c.branch)
	case head.Branch != c.on:
		r.cfg.UI.Warn("HEAD was on %s and is on %s now: commits go there", c.on, head.Branch)
		c.on, c.shown = head.Branch, r.sess.Redact(head.Branch)
	}
	return head, nil
}

// meanwhile returns the commits of the paths that were made while a unit was worked on.
func (r *runner) meanwhile(ctx context.Context, unit string, paths []string) (artifacts []string) {
	all, err := r.cfg.Repository.Since(ctx, r.commits.begun[unit], paths)
	if err != nil {
		r.log.Warn().Err(err).Msg("which commits the agent made is not known")
	}
	for _, hash := range all {
		artifacts = append(artifacts, artifactOwn+hash)
	}
	if begun := r.commits.begun[unit]; begun != "" {
		if has, err := r.cfg.Repository.Has(ctx, begun); err == nil && !has {
			r.cfg.UI.Warn("HEAD had %s before %s and has it no more: reset, amended or another branch; git reflog shows it", shortHash(begun), r.name(unit))
		}
	}
	if len(all) > 0 {
		r.cfg.UI.Say("committed while it was worked on: %s", list(shortHashes(all)))
	}
	return artifacts
}

// makeCommit makes the commit of a unit. artifacts say what became of it.
func (r *runner) makeCommit(ctx context.Context, unit string, leaves, paths []string) (artifacts []string, made repo.Made, err error) {
	head, err := r.commitHead(ctx)
	if err != nil || len(paths) == 0 {
		return nil, made, err
	}
	if head.Commit != r.commits.begun[unit] {
		artifacts = r.meanwhile(ctx, unit, paths)
	}
	made, err = r.cfg.Repository.CommitFiles(ctx, repo.Commit{Head: head, Paths: paths, Message: r.message(unit, leaves), Session: r.sess.State().ID().String(), Task: r.shownID(unit)})
	if err != nil {
		return artifacts, made, err
	}
	if made.Hash == "" {
		if len(artifacts) == 0 && len(made.Ignored) > 0 {
			err = fmt.Errorf("git ignores all that it changed: %s", list(made.Ignored))
		}
		if len(made.Submodules) > 0 {
			r.cfg.UI.Warn("not committed, because it is a submodule: %s", list(made.Submodules))
		}
		return artifacts, made, err
	}
	r.cfg.UI.Say("committed: %s on %s (%s)", shortHash(made.Hash), head.Branch, plain.Some(len(paths)-len(made.Ignored)-len(made.Submodules), "file"))
	if len(made.Submodules) > 0 {
		r.cfg.UI.Warn("not committed, because it is a submodule: %s", list(made.Submodules))
	}
	if made.Late != nil {
		r.cfg.UI.Warn("the commit is made, and git did not end after it: %s", r.quote(made.Late.Error()))
	}
	r.sayUnstaged(made.Unstaged)
	if made.Index != nil {
		r.cfg.UI.Warn("the commit is made, and the index is not up to date, so git status shows its files as changed: %s; then: git reset -q -- %s", r.quote(made.Index.Error()), filesOf(paths))
	}
	if len(made.More) > 0 {
		r.cfg.UI.Warn("a hook added to the commit: %s", list(made.More))
	}
	return append(artifacts, artifactCommit+made.Hash), made, nil
}

// sayUnstaged says which versions of files a commit took off the index.
func (r *runner) sayUnstaged(files []string) {
	if len(files) > 0 {
		r.cfg.UI.Warn("staged meanwhile in another version than the committed one, and not staged any more: %s; git cat-file blob HASH has it", list(files))
	}
}

// committed records what became of the commit of a unit.
func (r *runner) committed(leaves, artifacts []string) error {
	_, hash, ok := CommitOf(artifacts)
	if ok {
		r.git.Head = hash
	}
	return r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		h := e.Header()
		h.Commits = r.commits.state("")
		git := r.git
		if git.LastTaskCommit = h.Git.LastTaskCommit; ok {
			git.LastTaskCommit = hash
		}
		h.Git = git
		for _, id := range leaves {
			tasks.Set(e, id, func(t *session.Task) {
				if n := len(t.Log); n > 0 && len(artifacts) > 0 {
					t.Log = slices.Clone(t.Log)
					t.Log[n-1].Artifacts = append(slices.Clip(t.Log[n-1].Artifacts), artifacts...)
				}
			})
		}
		return nil
	})
}
