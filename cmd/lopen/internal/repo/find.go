package repo

import (
	"context"
	"strconv"
	"strings"
)

// The trailers by which a commit of lopen is found again.
const (
	trailerSession = "Lopen-Session: "
	trailerTask    = "Lopen-Task: "
)

// maxCommits bounds how many commits are looked at.
const maxCommits = 100

// A logEntry is a commit.
type logEntry struct{ hash, tree, parents, message string }

// of reports whether it is the commit of a task of a session.
func (e *logEntry) of(session, task string) bool {
	return has(e.message, trailerSession+session) && has(e.message, trailerTask+task)
}

// log returns the newest commits that HEAD has and base has not, the newest first. base is ""
// for all of HEAD's history.
func (r *Repository) log(ctx context.Context, base string) (all []logEntry, err error) {
	args := []string{"log", "-z", "--no-show-signature", "--max-count=" + strconv.Itoa(maxCommits), "--format=%H%n%T%n%P%n%B", "HEAD"}
	if base != "" {
		args = append(args, "^"+base)
	}
	out, err := r.Git(ctx, Command{Args: args})
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if part := strings.SplitN(entry, "\n", 4); len(part) == 4 {
			all = append(all, logEntry{part[0], part[1], part[2], part[3]})
		}
	}
	return all, err
}

// Find returns the newest commit of a task of a session that HEAD has and base has not, or "".
// base is "" for all of HEAD's history.
func (r *Repository) Find(ctx context.Context, base, session, task string) (string, error) {
	all, err := r.log(ctx, base)
	for _, e := range all {
		if e.of(session, task) {
			return e.hash, err
		}
	}
	return "", err
}

// has reports whether a text has a line.
func has(text, line string) bool {
	for have := range strings.SplitSeq(text, "\n") {
		if strings.TrimRight(have, " \r") == line {
			return true
		}
	}
	return false
}

// Has reports whether HEAD is a commit or comes after it.
func (r *Repository) Has(ctx context.Context, commit string) (bool, error) {
	_, err := r.Git(ctx, Command{Args: []string{"merge-base", "--is-ancestor", commit, "HEAD"}})
	if ExitOf(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Since returns the commits that HEAD has and base has not and that change one of the paths,
// relative to the folder that was opened: the newest few, the oldest of them first.
func (r *Repository) Since(ctx context.Context, base string, paths []string) ([]string, error) {
	input := "HEAD\n"
	if base != "" {
		input += "^" + base + "\n"
	}
	input += "--\n"
	for _, path := range paths {
		if !strings.Contains(path, "\n") {
			input += path + "\n"
		}
	}
	out, err := r.Git(ctx, Command{Args: []string{"--literal-pathspecs", "rev-list", "--no-merges", "--max-count=20", "--reverse", "--stdin"}, Input: []byte(input), alone: true})
	return strings.Fields(string(out)), err
}
