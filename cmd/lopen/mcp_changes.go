package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// changesSince is the data of changes_since.
type changesSince struct {
	noted
	chosen
	Checkpoint string    `json:"checkpoint"`
	Files      []diffRow `json:"files"`
	All        int       `json:"all"` // how many files differ
	Diff       string    `json:"diff,omitempty"`
	Cut        string    `json:"cut,omitempty"`
}

const (
	maxDiff  = 16 << 10 // bounds the diff of an answer, in bytes of JSON
	maxFiles = 20 << 10 // bounds its files, likewise
	ofFile   = 100      // what a file has beside its names
)

// maxLeft is how many diffs are made that do not fit, until no more are tried.
const maxLeft = 10

func (t *toolAnswer) changesSince(ctx context.Context, in mcp.ChangesSince) (answerData, error) {
	limit, err := atMost(in.Limit, 100, 200)
	if err != nil {
		return nil, err
	}
	var found *changesSince
	err = t.readCheckpoints(in.Session, func(store *lifecycle.Store, id session.ID, cps *chain) error {
		if err := t.choose(store, id, in.Session); err != nil {
			return err
		}
		within, err := t.folderIn(cps.folder, in.Path)
		if err != nil {
			return err
		}
		changes, err := cps.compare(ctx, id, []string{in.Checkpoint})
		if err != nil {
			return err
		}
		changes = slices.DeleteFunc(changes, func(c files.Change) bool { return !inFolder(c.Path, within) && !inFolder(c.From, within) })
		found = &changesSince{chosen: t.about, Checkpoint: plain.Clip(in.Checkpoint, 200), All: len(changes)}
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

// fitting are the first changes that have room in an answer.
func fitting(changes []files.Change, limit int) []files.Change {
	size := 0
	for i, c := range changes {
		if size += sizeAsJSON(c.Path) + sizeAsJSON(c.From) + ofFile; i == limit || size > maxFiles {
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
	room, err := roomForDiff(found)
	if err != nil {
		return err
	}
	var b strings.Builder
	left, size := 0, 0
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
		patch = strings.ToValidUTF8(patch, "\ufffd")
		more := sizeAsJSON(patch)
		if size == 0 && more > room { // the begin of one is better than nothing
			begin := beginAsJSON(patch, room-200)
			patch = begin + fmt.Sprintf("\n... cut: %d more bytes of this file's diff\n", len(patch)-len(begin))
			more = sizeAsJSON(patch)
		}
		if size+more > room {
			left++
			continue
		}
		b.WriteString(patch)
		size += more
	}
	if left > 0 {
		found.Cut = strings.TrimPrefix(found.Cut+"; the diffs of "+plain.Some(left, "more file")+" do not fit: give a path", "; ")
		fmt.Fprintln(t.stdout, found.Cut)
	}
	found.Diff = b.String()
	_, err = fmt.Fprint(t.stdout, found.Diff)
	return err
}

// roomForDiff is how many bytes of JSON a diff may have in an answer that has the files already. Some is
// left for what is said about them.
func roomForDiff(found *changesSince) (int, error) {
	data, err := mcp.Encode(found)
	return min(maxDiff, mcp.MaxData-len(data)-6<<10), err
}

// sizeAsJSON is how many bytes a text has in an answer's data: a character has up to six.
func sizeAsJSON(text string) int {
	data, err := mcp.Encode(text)
	if err != nil { // does not happen for a text
		return 6 * len(text)
	}
	return len(data)
}

// beginAsJSON is the begin of a text that has at most so many bytes as JSON.
func beginAsJSON(text string, most int) string {
	for size := sizeAsJSON(text); size > most && text != ""; size = sizeAsJSON(text) {
		text = plain.Clip(text, min(len(text)*most/size, len(text)-1))
	}
	return text
}
