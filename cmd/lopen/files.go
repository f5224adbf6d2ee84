package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
)

// filesRecord is where `files record` keeps its snapshot, from the project on.
const filesRecord = lifecycle.Dir + "/cache/files.bin"

func newFilesRecord(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "record [PATH...]",
		Short: "Remember what the project's files are now",
		Long:  "Remember what the project's files, or the named ones, are now, for `lopen files changed`.\nWhat .gitignore and .lopenignore leave out is left out.",
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			named, err := a.inProject(store, args)
			if err != nil {
				return err
			}
			before, err := files.Load(store.Project(), filesRecord)
			if err != nil {
				before = nil // it spares reading, no more
			}
			now, err := files.Take(cmd.Context(), store.Project(), before, files.Options{Paths: named, Nested: true})
			if errors.Is(err, lifecycle.ErrInvalid) {
				return &usageError{err}
			}
			if err != nil {
				return err
			}
			if err := files.Save(store.Project(), filesRecord, now); err != nil {
				return err
			}
			a.saySkipped(now.Skipped)
			count, bytes := 0, int64(0)
			for i := range now.Files {
				if !now.Files[i].Mode.IsDir() {
					count++
				}
				bytes += now.Files[i].Size
			}
			fmt.Fprintf(a.stdout, "%d files recorded, %d bytes, %d skipped\n", count, bytes, len(now.Skipped))
			return nil
		},
	}
}

// inProject turns paths from where the command was called into paths of the project.
func (a *app) inProject(store *lifecycle.Store, args []string) ([]string, error) {
	start, err := a.start()
	if err != nil {
		return nil, err
	}
	var named []string
	for _, arg := range args {
		full := arg
		if !filepath.IsAbs(arg) {
			full = filepath.Join(start, arg)
		}
		name, err := filepath.Rel(store.Project().Name(), full)
		if err != nil || !filepath.IsLocal(name) {
			return nil, usagef("%s is not in the project %s", arg, store.Project().Name())
		}
		if _, err := store.Project().Lstat(name); err != nil {
			return nil, usagef("record: %w", err)
		}
		named = append(named, filepath.ToSlash(name))
	}
	return named, nil
}

// saySkipped names what was left out but for the ignored.
func (a *app) saySkipped(skipped []files.Skip) {
	for _, k := range skipped {
		if k.Reason == files.Ignored {
			continue
		}
		cause := ""
		if k.Err != "" {
			cause = ": " + k.Err
		}
		fmt.Fprintf(a.stderr, "skipped %s: %s%s\n", shown(k.Path), k.Reason, cause)
	}
}

func newFilesChanged(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "changed",
		Short: "List what changed since `lopen files record`",
		Long:  "List what changed since `lopen files record`: A created, M modified, D deleted, R moved, m mode only.\nWhat is deleted is listed once; the rest until the next record.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			base, err := files.Load(store.Project(), filesRecord)
			if errors.Is(err, fs.ErrNotExist) {
				return &loop.Exit{Code: exitNotFound, Reason: "no files are recorded yet; record them with `lopen files record`"}
			}
			if err != nil {
				return fmt.Errorf("%w; record the files anew with `lopen files record`", err)
			}
			now, err := files.Take(cmd.Context(), store.Project(), base, files.Options{Paths: base.Paths, Nested: true})
			if err != nil {
				return err
			}
			a.saySkipped(now.Skipped)
			if err := a.printChanges(files.Compare(base, now)); err != nil {
				return err
			}
			if err := files.Save(store.Project(), filesRecord, base.Refresh(now)); err != nil {
				a.logger.Warn().Err(err).Msg("the record of the files stays as it was")
			}
			return nil
		},
	})
}

// changeRow is a change as `files changed --json` prints it. What is not UTF-8 has
// its bytes in base64 beside it.
type changeRow struct {
	Kind      files.Kind `json:"kind"`
	Path      string     `json:"path"`
	PathBytes []byte     `json:"pathBytes,omitempty"`
	From      string     `json:"from,omitempty"`
	FromBytes []byte     `json:"fromBytes,omitempty"`
}

// letters are what a line begins with.
var letters = map[files.Kind]string{files.Created: "A", files.Modified: "M", files.Deleted: "D", files.Moved: "R", files.Mode: "m"}

func (a *app) printChanges(changes []files.Change) error {
	rows := []changeRow{}
	for _, c := range changes {
		row := changeRow{Kind: c.Kind, Path: c.Path, From: c.From}
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
		fmt.Fprintf(&lines, "%s %s%s\n", letters[r.Kind], from, shown(r.Path))
	}
	_, err := io.WriteString(a.stdout, lines.String())
	return err
}

// shown is a path on a line: quoted where it would not be one line of plain text.
func shown(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` {
		return q
	}
	return path
}
