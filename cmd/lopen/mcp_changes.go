package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// changesSince is the data of changes_since.
type changesSince struct {
	Session    string    `json:"session"`
	Checkpoint string    `json:"checkpoint"`
	Files      []diffRow `json:"files"`
	All        int       `json:"all"` // how many files differ
	Diff       string    `json:"diff,omitempty"`
	Cut        string    `json:"cut,omitempty"`
}

// maxDiff bounds the diff of an answer, in bytes, and maxNames the paths.
const maxDiff, maxNames = 16 << 10, 12 << 10

// maxLeft is how many diffs are made that do not fit, until no more are tried.
const maxLeft = 10

func (t *toolAnswer) changesSince(ctx context.Context, in mcp.ChangesSince) (any, error) {
	limit, err := atMost(in.Limit, 100, 200)
	if err != nil {
		return nil, err
	}
	var found *changesSince
	err = t.readCheckpoints(in.Session, func(store *lifecycle.Store, id session.ID, cps *chain) error {
		within, err := t.folderIn(cps.folder, in.Path)
		if err != nil {
			return err
		}
		changes, err := cps.compare(ctx, id, []string{in.Checkpoint})
		if err != nil {
			return err
		}
		changes = slices.DeleteFunc(changes, func(c files.Change) bool { return !inFolder(c.Path, within) && !inFolder(c.From, within) })
		found = &changesSince{Session: id.String(), Checkpoint: plain.Clip(in.Checkpoint, 200), All: len(changes)}
		changes = fitting(changes, limit)
		if found.Files, err = cps.diffRows(changes); err != nil {
			return err
		}
		if more := found.All - len(changes); more > 0 {
			found.Cut = plain.Some(more, "more file") + " changed: give a path"
		}
		if err := printStat(t.stdout, found.Files, found.All); err != nil || !in.Diff {
			return err
		}
		values, err := t.storeSettings(store, nil)
		if err != nil {
			return err
		}
		hide, err := redact.New(values.RedactPatterns)
		if err != nil {
			return usagef("redact_patterns: %w", err)
		}
		return t.addDiff(ctx, found, cps, changes, hide)
	})
	return found, err
}

// fitting are the first changes whose names have room in an answer.
func fitting(changes []files.Change, limit int) []files.Change {
	size := 0
	for i, c := range changes {
		if size += len(c.Path) + len(c.From); i == limit || size > maxNames {
			return changes[:i]
		}
	}
	return changes
}

// folderIn is a path that an agent gave, from the project's folder: agents give absolute ones as well.
func (t *toolAnswer) folderIn(project, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(project, path)
	}
	return t.within(project, path)
}

// inFolder reports whether a path is another one or in that folder; "." is the project's folder.
func inFolder(path, folder string) bool {
	return folder == "." || path == folder || strings.HasPrefix(path, folder+"/")
}

// addDiff adds the patches that fit, each whole, with the credentials of the contents hidden:
// unlike what is stored of an agent's texts, files have them.
func (t *toolAnswer) addDiff(ctx context.Context, found *changesSince, cps *chain, changes []files.Change, hide *redact.Redactor) error {
	var b strings.Builder
	left := 0
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if left == maxLeft {
			left += len(changes) - i
			break
		}
		patch, err := cps.PatchShown(c.Old, c.New, func(text string) string { text, _ = hide.String(text); return text })
		if err != nil {
			return err
		}
		if b.Len() == 0 && len(patch) > maxDiff { // the begin of one is better than nothing
			patch = plain.Clip(patch, maxDiff-200) + fmt.Sprintf("\n... cut: %d more bytes of this file's diff\n", len(patch)-maxDiff+200)
		}
		if b.Len()+len(patch) > maxDiff {
			left++
			continue
		}
		b.WriteString(strings.ToValidUTF8(patch, "\ufffd"))
	}
	if left > 0 {
		found.Cut = strings.TrimPrefix(found.Cut+"; the diffs of "+plain.Some(left, "more file")+" do not fit: give a path", "; ")
		fmt.Fprintln(t.stdout, found.Cut)
	}
	found.Diff = b.String()
	_, err := fmt.Fprint(t.stdout, found.Diff)
	return err
}
