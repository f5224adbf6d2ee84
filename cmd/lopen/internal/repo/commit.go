package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
)

// A Commit is what to commit.
type Commit struct {
	Paths         []string      // of files, relative to the folder that was opened; those that are gone are deleted
	Message       string        // without trailers
	Session, Task string        // the trailers' values, by which [Repository.Find] finds the commit
	Head          Head          // what [Repository.Head] returned: where the commit is to be made
	Limit         time.Duration // of all of it; 0 is Patience
}

// Made is a commit that was made.
type Made struct {
	Hash    string   // "" if HEAD has the files as they are
	First   bool     // it is the first one
	Ignored []string // paths that git ignores, which are not committed
	// Submodules are paths that are not committed either: which commit of a submodule is used is the person's to say.
	Submodules []string
	More       []string // paths that hooks added to the commit
	// Rewritten says that hooks committed other contents than those of the files.
	Rewritten bool
	// Unstaged are files of the commit that were staged in a version that is neither the old one
	// nor the committed one, each with the blob's short hash. They are not staged any more: the
	// next commit would take back what this one has.
	Unstaged []string
	// Index is why the work tree's index was not brought up to date, or nil.
	Index error
	// Late is why git was killed after it had made the commit, or nil: a hook hangs.
	Late error
}

// lockPatience is how long another git may have the work tree's index locked.
const lockPatience = time.Second

// ErrHead means that a commit was not made because HEAD moved meanwhile.
var ErrHead = errors.New("HEAD moved meanwhile")

// CommitFiles commits files as they are, on top of HEAD, as git commit does: with hooks and
// signing. It takes an index of its own, so that what the person staged is not in the commit
// and stays staged. Then it brings the work tree's index up to date for the files of the commit.
// If HEAD moves meanwhile, it begins again once. If the
// error is not nil, there is no commit, unless it says so.
func (r *Repository) CommitFiles(ctx context.Context, c Commit) (Made, error) {
	if c.Limit == 0 {
		c.Limit = Patience
	}
	deadline := time.Now().Add(c.Limit)
	r, release, err := r.held(ctx)
	if err != nil {
		return Made{}, err
	}
	defer release()
	made, err := r.commit(ctx, c, deadline)
	if errors.Is(err, ErrHead) {
		branch := c.Head.Branch
		if c.Head, err = r.Head(ctx); err != nil || c.Head.Branch != branch {
			return Made{}, errors.Join(ErrHead, err)
		}
		made, err = r.commit(ctx, c, deadline)
	}
	return made, err
}

func (r *Repository) commit(ctx context.Context, c Commit, deadline time.Time) (made Made, err error) {
	dir, err := git.Scratch(r.getenv)
	if err != nil {
		return made, fmt.Errorf("make a folder for the index: %w", err)
	}
	defer dir.Close()
	p := private{Repository: r, index: filepath.Join(dir.Path(), "index"), head: c.Head, deadline: deadline}
	if made.Ignored, err = p.fill(ctx, c.Paths); err != nil {
		return made, err
	}
	made.Submodules = p.submodules
	tree, err := p.tree(ctx)
	if err != nil || tree == "" {
		return made, err
	}
	if what := r.Unfinished(); what != "" {
		return made, fmt.Errorf("%s is in progress in %s", what, r.Top)
	}
	message := fmt.Sprintf("%s\n\n%s%s\n%s%s\n", strings.TrimSpace(c.Message), trailerSession, c.Session, trailerTask, c.Task)
	_, made.Late = p.git(ctx, []byte(message), "commit", "-q", "--cleanup=whitespace", "-F", "-")
	if made.Late != nil && (ctx.Err() != nil || !p.has(ctx, c)) {
		return Made{}, made.Late
	}
	ctx = context.WithoutCancel(ctx) // what follows takes moments, and the commit is made
	hash, now, err := p.made(ctx, c)
	if err != nil {
		return Made{}, err
	}
	made.Hash, made.Rewritten = hash, now != tree
	committed, err := p.differing(ctx, "diff-tree", "-r", "--no-renames", p.head.tree, made.Hash)
	made.First = p.head.Commit == ""
	if err != nil {
		made.Index = err
		return made, nil
	}
	for _, path := range committed {
		if rel, ok := strings.CutPrefix(path, r.Prefix); !ok || !slices.Contains(c.Paths, rel) {
			made.More = append(made.More, path)
		}
	}
	made.Unstaged, made.Index = p.refresh(ctx, c.Paths, committed, made.Hash)
	return made, nil
}

// A private index is the index of one commit.
type private struct {
	*Repository
	index    string
	head     Head // when it was made
	deadline time.Time
	// submodules are the paths that fill left out because they are submodules.
	submodules []string
}

// git starts git on the index, within what is left of the time.
func (p *private) git(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	return p.Git(ctx, Command{Args: args, Index: p.index, Input: input, Limit: max(time.Until(p.deadline), time.Millisecond)})
}

// line returns the line that git prints.
func (r *Repository) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.Git(ctx, Command{Args: args})
	return strings.TrimSpace(string(out)), err
}

// fill makes the index: HEAD, with the files at paths as they are. It begins with a copy of the
// work tree's, which knows the times of the files, so that git need not read all of them.
// Ignored are the paths that git ignores.
func (p *private) fill(ctx context.Context, paths []string) (ignored []string, err error) {
	from := []string{"read-tree", "--empty"}
	if p.head.Commit != "" {
		from = []string{"read-tree", "--reset", p.head.Commit}
		if err := copyIndex(filepath.Join(p.Dir, "index"), p.index); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("copy the index: %w", err)
		}
	}
	if _, err := p.git(ctx, nil, from...); err != nil {
		return nil, err
	}
	there, gone, folders := p.divide(paths)
	if there, ignored, err = p.notIgnored(ctx, there); err != nil {
		return nil, err
	}
	if err == nil {
		folders, err = p.notSubmodules(ctx, folders)
	}
	if len(folders) > 0 && err == nil { // which git would add, or refuse
		_, err = p.git(ctx, zeros(folders), "update-index", "-z", "--force-remove", "--stdin")
	}
	if all := slices.Concat(there, gone); len(all) > 0 && err == nil {
		_, err = p.git(ctx, zeros(all), "update-index", "-z", "--add", "--remove", "--replace", "--ignore-skip-worktree-entries", "--stdin")
	}
	return ignored, err
}

// notSubmodules returns those of some folders that are no submodules, and notes the others.
func (p *private) notSubmodules(ctx context.Context, folders []string) ([]string, error) {
	repositories := slices.DeleteFunc(slices.Clone(folders), func(path string) bool {
		_, err := os.Lstat(filepath.Join(p.folder, filepath.FromSlash(path), git.Mark))
		return err != nil
	})
	if len(repositories) == 0 {
		return folders, nil
	}
	out, err := p.git(ctx, nil, append([]string{"--literal-pathspecs", "ls-files", "-z", "--stage", "--"}, repositories...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if stat, path, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(stat, "160000 ") {
			folders = slices.DeleteFunc(folders, func(f string) bool { return f == path })
			p.submodules = append(p.submodules, path)
		}
	}
	return folders, nil
}

// divide divides paths by what is there now: files, nothing, and folders.
func (p *private) divide(paths []string) (there, gone, folders []string) {
	for _, path := range paths {
		switch info, err := os.Lstat(filepath.Join(p.folder, filepath.FromSlash(path))); {
		case err != nil:
			gone = append(gone, path)
		case info.IsDir():
			folders = append(folders, path)
		default:
			there = append(there, path)
		}
	}
	return there, gone, folders
}

// notIgnored divides the paths of files into those that are committed and those that git
// ignores, which neither HEAD nor the work tree's index has.
func (p *private) notIgnored(ctx context.Context, paths []string) (taken, ignored []string, err error) {
	if len(paths) == 0 {
		return nil, nil, nil
	}
	check := []string{"check-ignore", "-z", "--stdin"}
	out, err := p.git(ctx, zeros(paths), check...)
	if err == nil && len(out) > 0 {
		out, err = p.Git(ctx, Command{Args: check, Input: out})
	}
	if err != nil && ExitOf(err) != 1 { // 1: none is ignored
		return nil, nil, err
	}
	skip := map[string]bool{}
	for path := range strings.SplitSeq(string(out), "\x00") {
		skip[path] = true
	}
	for _, path := range paths {
		if skip[path] {
			ignored = append(ignored, path)
		} else {
			taken = append(taken, path)
		}
	}
	return taken, ignored, nil
}

// tree writes the index as a tree. It returns "" if that is HEAD's.
func (p *private) tree(ctx context.Context) (string, error) {
	out, err := p.git(ctx, nil, "write-tree")
	if err != nil {
		return "", err
	}
	if tree := strings.TrimSpace(string(out)); tree != p.head.tree {
		return tree, nil
	}
	return "", nil
}

// has reports whether a git that failed had made the commit: what comes after it may hang.
func (p *private) has(ctx context.Context, c Commit) bool {
	all, err := p.log(ctx, p.head.Commit)
	return err == nil && slices.ContainsFunc(all, func(e logEntry) bool { return e.of(c.Session, c.Task) })
}

// made returns the commit that was just made, and its tree. If HEAD moved between the making of
// the index and the commit, the commit undoes what HEAD moved to: then it is taken off the
// branch again, unless it is not HEAD any more, and the error is [ErrHead].
func (p *private) made(ctx context.Context, c Commit) (hash, tree string, err error) {
	all, err := p.log(ctx, p.head.Commit)
	if err != nil || len(all) == 0 {
		return "", "", errors.Join(ErrHead, err)
	}
	i := slices.IndexFunc(all, func(e logEntry) bool { return e.of(c.Session, c.Task) })
	named := i >= 0
	e := all[max(i, 0)] // without a name HEAD: a hook wrote another message
	if e.parents == p.head.Commit {
		return e.hash, e.tree, nil
	}
	if !named {
		return "", "", fmt.Errorf("%w: which commit was made is not known, since a hook took its trailers away: look at it with git log", ErrHead)
	}
	_, err = p.line(ctx, "update-ref", "-m", "lopen: HEAD had moved", "HEAD", e.parents, e.hash)
	if err != nil {
		err = fmt.Errorf("commit %s may undo what %s has, look at it with git show: %w", e.hash, e.parents, err)
	}
	return "", "", errors.Join(ErrHead, err)
}

// differing returns the paths that a plumbing command with -z and --name-only prints, relative
// to the top of the work tree.
func (r *Repository) differing(ctx context.Context, command string, args ...string) ([]string, error) {
	out, err := r.Git(ctx, Command{Args: append([]string{command, "-z", "--name-only"}, args...), Dir: r.Top})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// refresh brings the work tree's index up to date for the files of a commit, so that git
// status shows them as they are. What the person staged stays as it is, except of the files
// that were asked for: nothing of them was staged when the task began, so that it is the agent
// that staged what they were on the way. Those are returned where they are lost in the index.
func (p *private) refresh(ctx context.Context, asked, committed []string, hash string) (unstaged []string, err error) {
	before, err := p.staged(ctx, p.head.tree)
	if err != nil {
		return nil, err
	}
	after, err := p.staged(ctx, hash)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, path := range committed {
		blob, ok := before[path]
		rel, below := strings.CutPrefix(path, p.Prefix)
		if ok && !(below && slices.Contains(asked, rel)) {
			continue
		}
		if _, differs := after[path]; ok && differs {
			unstaged = append(unstaged, rel+" ("+blob+")")
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	return unstaged, p.reset(ctx, p.Top, paths, hash)
}

// Unstage makes the index entries of paths, relative to the folder that was opened, those of
// HEAD.
func (r *Repository) Unstage(ctx context.Context, paths []string) error {
	return r.reset(ctx, r.folder, paths)
}

// reset makes the index entries of paths, relative to dir, those of a commit, by default of
// HEAD. Another git that has the index locked, as that of an editor has each time it looks at
// the files, gets lockPatience.
func (r *Repository) reset(ctx context.Context, dir string, paths []string, commit ...string) error {
	args := append([]string{"--literal-pathspecs", "reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul"}, commit...)
	for until := time.Now().Add(lockPatience); ; {
		_, err := r.Git(ctx, Command{Args: args, Dir: dir, Input: zeros(paths)})
		if err == nil || ExitOf(err) != 128 || !strings.Contains(err.Error(), "index.lock") || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPatience / 20):
		}
	}
}

// staged returns the short hashes of the blobs of the files that the index has otherwise than a
// tree, by path relative to the top of the work tree.
func (r *Repository) staged(ctx context.Context, tree string) (map[string]string, error) {
	out, err := r.Git(ctx, Command{Args: []string{"diff-index", "-z", "--abbrev=10", "--cached", "--no-renames", "--ignore-submodules", tree}, Dir: r.Top})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	words := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(words); i += 2 { // ":modes hashes letter", path
		if f := strings.Fields(words[i]); len(f) == 5 {
			all[words[i+1]] = f[3]
		}
	}
	return all, nil
}

// Refresh brings the work tree's index up to date for the files of a commit that was made while
// nobody could do that. Of a file that is as the commit has it, what is staged otherwise was
// staged on the way there: it is not staged any more, and unstaged has it as [Made] does.
func (r *Repository) Refresh(ctx context.Context, hash string) (unstaged []string, err error) {
	r, release, err := r.held(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	tree, err := r.line(ctx, "rev-parse", "-q", "--verify", hash+"^^{tree}")
	if ExitOf(err) > 0 { // it has no parent
		tree, err = r.line(ctx, "hash-object", "-t", "tree", os.DevNull)
	}
	if err != nil {
		return nil, err
	}
	committed, err := r.differing(ctx, "diff-tree", "-r", "--no-renames", tree, hash)
	if err != nil {
		return nil, err
	}
	dir, err := git.Scratch(r.getenv)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the index: %w", err)
	}
	defer dir.Close()
	p := private{Repository: r, index: filepath.Join(dir.Path(), "index"), head: Head{Commit: hash, tree: tree}, deadline: time.Now().Add(Patience)}
	asked, err := p.unchanged(ctx, committed)
	if err != nil {
		return nil, err
	}
	return p.refresh(ctx, asked, committed, hash)
}

// unchanged returns those of the committed paths, relative to the folder that was opened, that
// are staged and that HEAD and the work tree have as the commit has them.
func (p *private) unchanged(ctx context.Context, committed []string) (paths []string, err error) {
	staged, err := p.staged(ctx, p.head.tree)
	if err != nil {
		return nil, err
	}
	moved, err := p.differing(ctx, "diff-tree", "-r", "--no-renames", p.head.Commit, "HEAD")
	if err != nil {
		return nil, err
	}
	for _, path := range committed {
		if rel, below := strings.CutPrefix(path, p.Prefix); below && staged[path] != "" && !slices.Contains(moved, path) {
			paths = append(paths, rel)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	if _, err := p.fill(ctx, paths); err != nil {
		return nil, err
	}
	out, err := p.Git(ctx, Command{Args: []string{"diff-index", "-z", "--name-only", "--cached", "--no-renames", p.head.Commit}, Dir: p.Top, Index: p.index})
	if err != nil {
		return nil, err
	}
	changed := strings.Split(string(out), "\x00")
	return slices.DeleteFunc(paths, func(rel string) bool { return slices.Contains(changed, p.Prefix+rel) }), nil
}

// zeros returns paths with a NUL behind each.
func zeros(paths []string) []byte {
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// copyIndex copies an index with its time of modification: a file that was changed within the same second
// is known to git by nothing else.
func copyIndex(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, time.Time{}, info.ModTime()))
}

// getenv returns a variable of the person's environment.
func (r *Repository) getenv(name string) (value string) {
	for _, kv := range r.environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
