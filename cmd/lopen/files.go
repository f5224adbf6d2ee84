package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newFiles(a *app) *cobra.Command {
	return group("files", "Record the project's files, and list what changed since", newFilesRecord(a), newFilesChanged(a))
}

// filesRecord is where `files record` keeps its snapshot, from the project on.
const filesRecord = lifecycle.Dir + "/" + filesKey

// filesKey names it in a Memory.
const filesKey = "cache/files.bin"

// recorded returns what `files record` recorded, and whether that is what was remembered.
func (a *app) recorded(store *lifecycle.Store) (s *files.Snapshot, known bool, err error) {
	return files.Recall(store.Project(), filesRecord, a.memory(store.Project().Name()), filesKey)
}

// record replaces what `files record` recorded.
func (a *app) record(store *lifecycle.Store, s *files.Snapshot) error {
	return files.Remember(store.Project(), filesRecord, s, a.memory(store.Project().Name()), filesKey)
}

// warnSkipped names what was left out but for the ignored.
func (a *app) warnSkipped(skipped []files.Skip) {
	for _, k := range skipped {
		switch k.Reason {
		case files.Ignored:
			continue
		case files.Hidden:
			fmt.Fprintf(a.stderr, "not stored %s: %s, which a rule hides that a task wrote\n", shown(k.Path), k.Listing)
			continue
		}
		cause := ""
		if k.Err != "" {
			cause = ": " + k.Err
		}
		fmt.Fprintf(a.stderr, "skipped %s: %s%s\n", shown(k.Path), k.Reason, cause)
	}
}

// changeRow is a change as `files changed --json` prints it. A path that is not
// UTF-8 comes with its bytes in base64.
type changeRow struct {
	Kind      files.Kind `json:"kind"`
	Path      string     `json:"path"`
	PathBytes []byte     `json:"pathBytes,omitempty"`
	From      string     `json:"from,omitempty"`
	FromBytes []byte     `json:"fromBytes,omitempty"`
	Unstored  string     `json:"unstored,omitempty"` // numbers of files and bytes that no checkpoint has
}

// notStored is what a line says behind a path of which no checkpoint has the files.
func notStored(numbers string) string {
	if numbers == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, not stored)", numbers)
}

// letters are what a line begins with.
var letters = map[files.Kind]string{files.Created: "A", files.Modified: "M", files.Deleted: "D", files.Moved: "R", files.Mode: "m"}

func (a *app) printChanges(changes []files.Change) error {
	rows := []changeRow{}
	for _, c := range changes {
		row := changeRow{Kind: c.Kind, Path: c.Path, From: c.From}
		_, row.Unstored = c.Unstored()
		if !utf8.ValidString(c.Path) {
			row.PathBytes = []byte(c.Path)
		}
		if !utf8.ValidString(c.From) {
			row.FromBytes = []byte(c.From)
		}
		rows = append(rows, row)
	}
	if a.out.machine() {
		return a.printJSON(rows)
	}
	var lines strings.Builder
	for _, r := range rows {
		from := ""
		if r.From != "" {
			from = shown(r.From) + " -> "
		}
		fmt.Fprintf(&lines, "%s %s%s%s\n", letters[r.Kind], from, shown(r.Path), notStored(r.Unstored))
	}
	_, err := io.WriteString(a.stdout, lines.String())
	return err
}
