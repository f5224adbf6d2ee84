package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/writer/plain"
)

// base returns the commit at which the branch of a module begins, "" for HEAD: that of the modules
// that it comes after, where HEAD does not have them yet. Several are merged in a commit that no
// branch has.
func (w *workCall) base(ctx context.Context, m *member) (string, error) {
	at := ""
	var in []string // branches that at has
	for _, module := range m.turn.After {
		branches, err := w.branches(module)
		if err != nil {
			return "", err
		}
		for _, branch := range branches {
			if n, err := w.ahead(ctx, "HEAD", branch); err != nil || n == 0 {
				if err != nil {
					return "", err
				}
				continue
			}
			if in = append(in, branch); at == "" {
				at = "refs/heads/" + branch
				continue
			}
			var conflicts []string
			if at, conflicts, err = w.repo.Merge(ctx, at, branch); err != nil {
				return "", err
			}
			if len(conflicts) > 0 {
				return "", &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("it comes after branches that conflict in %s; merge them, and begin again:\n  %s\n  lopen work %s",
					firstOf(conflicts), strings.Join(merges(in), "\n  "), m.module)}
			}
		}
	}
	return at, nil
}

// merges are the commands that merge branches into the one that is checked out.
func merges(branches []string) (commands []string) {
	for _, b := range branches {
		commands = append(commands, quoted([]string{"git", "merge", b}))
	}
	return commands
}

// branches are those that lopen made for the sessions of a module and that are there, the oldest
// first.
func (w *workCall) branches(module string) (names []string, err error) {
	infos, err := w.store.List()
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(infos) {
		if info.ID.Module != module || info.Err != nil {
			continue
		}
		st, _, err := w.store.Read(info.ID)
		if err != nil {
			return nil, err
		}
		if tree := st.Header().Worktree; tree != nil && tree.Branch != "" && !slices.Contains(names, tree.Branch) {
			names = append(names, tree.Branch)
		}
	}
	return names, nil
}

// newest is the last of a module's branches, "" if none is known.
func (w *workCall) newest(module string) string {
	branches, err := w.branches(module)
	if err != nil || len(branches) == 0 {
		return ""
	}
	return branches[len(branches)-1]
}

// ahead is how many commits a branch has that a commit has not. One that is not there any more has none.
func (w *workCall) ahead(ctx context.Context, commit, branch string) (int, error) {
	if tip, err := w.repo.Commit(ctx, "refs/heads/"+branch); err != nil || tip == "" {
		return 0, err
	}
	return w.repo.Ahead(ctx, commit, branch)
}

// sayMerge says how what was done before comes to the branch that is checked out: a kill may have come
// before the report.
func (w *workCall) sayMerge(ctx context.Context, all *roster) {
	if w.repo == nil {
		return
	}
	steps, err := w.toMerge(ctx, all)
	if err != nil {
		fmt.Fprintf(w.stderr, "warning: what there is to merge is not known: %v\n", err)
	}
	for _, step := range steps {
		fmt.Fprintf(w.stderr, "%s:\n  %s\n", step.What, strings.Join(step.Commands, "\n  "))
	}
}

// toMerge are the steps by which the branches of the members, and of the modules that were done before,
// come to the one that is checked out.
func (w *workCall) toMerge(ctx context.Context, all *roster) (steps []report.Step, err error) {
	if child.Killed() { // and every git would be
		return []report.Step{{What: "see what there is to merge", Commands: []string{"lopen worktree list"}}}, nil
	}
	at, in := "HEAD", []string(nil)
	var apart, unfinished []report.Step
	for _, m := range all.before {
		m.branch = w.newest(m.module)
	}
	for _, m := range slices.Concat(all.before, all.members) {
		n, err := w.ahead(ctx, "HEAD", m.branch)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		if m.code() != 0 {
			unfinished = append(unfinished, report.Step{What: m.module + " is not finished; to merge what it has so far", Commands: merges([]string{m.branch})})
			continue
		}
		next, conflicts, err := w.repo.Merge(ctx, at, m.branch)
		switch {
		case err != nil:
			return nil, err
		case len(conflicts) > 0:
			apart = append(apart, report.Step{What: fmt.Sprintf("merge %s by hand: after the others it conflicts in %s (%s)", m.module, plain.Some(len(conflicts), "file"), firstOf(conflicts)), Commands: merges([]string{m.branch})})
		default:
			at, in = next, append(in, m.branch)
		}
	}
	if len(in) > 0 {
		steps = append(steps, report.Step{What: "merge, in this order, without a conflict", Commands: merges(in)})
	}
	if steps = append(steps, apart...); len(steps) > 0 {
		steps = append(steps, report.Step{What: "remove the work trees that are merged", Commands: []string{"lopen worktree list", "lopen worktree remove ID"}})
	}
	return append(steps, unfinished...), nil
}
