package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/plain"
)

// exportFlags are the flags of export.
type exportFlags struct {
	out                string
	all, force         bool
	noMessages, redact bool
	keys               *keyFlags
	key                *crypt.Key // nil if it is not encrypted
}

// exportRow is what `session export --json` prints.
type exportRow struct {
	File        string            `json:"file"`
	Size        int64             `json:"size"` // of the file, in bytes
	Bytes       int64             `json:"bytes"`
	Entries     int               `json:"entries"`
	Checkpoints int               `json:"checkpoints"`
	Objects     int               `json:"objects"`
	Project     int               `json:"projectFiles"`
	Sessions    []bundle.Session  `json:"sessions"`
	Documents   []bundle.Document `json:"documents"`
	Skipped     []skippedRow      `json:"skipped"`
	Warnings    []string          `json:"warnings"`
}

type skippedRow struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

func newSessionExport(a *app) *cobra.Command {
	var ef exportFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "export [ID...]",
		Short: "Write sessions with all that they need into one file",
		Long: `Write sessions with all that they need into one file: log, messages, output, history,
checkpoints with their contents, plan, specification and research. Without ID it is the newest
session. One that runs is not disturbed: the file has it as it was at one moment.
lopen session import FILE takes it into another project; tar --zstd -tf FILE lists it, and
age -d opens one that is encrypted.

The file has mode 0600 and everything that the agent and you wrote. --redact hides credentials
once more, with your redact_patterns, and leaves out the checkpoints, whose contents cannot be
changed under their hashes. --no-messages leaves out what was said. For both a session is
written anew among the temporary files (TMPDIR) first.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case ef.all && len(args) > 0:
				return usagef("give IDs or --all, not both")
			case ef.out == "-" && a.out.machine():
				return usagef("what is exported goes to stdout: nothing else can be printed there")
			case ef.out == "-" && a.stdout.Terminal():
				return usagef("stdout is a terminal: give a file with -o, or a pipe")
			}
			var err error
			if ef.key, err = ef.keys.encryption(cmd.Context()); err != nil {
				return err
			}
			return a.readStore(func(store *lifecycle.Store) error { return a.export(cmd.Context(), store, args, ef) })
		},
	})
	ef.keys = a.keyFlags(cmd, true)
	f := cmd.Flags()
	f.StringVarP(&ef.out, "output", "o", "", "write this `FILE`, - for stdout (default {ID}.lopen.tar.zst, .age behind it if encrypted)")
	f.BoolVar(&ef.all, "all", false, "all sessions that can be read, and all checkpoints")
	f.BoolVar(&ef.noMessages, "no-messages", false, "leave out what messages and events say, and the output")
	f.BoolVar(&ef.redact, "redact", false, "hide credentials in all texts once more; without checkpoints")
	f.BoolVar(&ef.force, "force", false, "replace FILE if it is there")
	return cmd
}

func (a *app) export(ctx context.Context, store *lifecycle.Store, args []string, ef exportFlags) error {
	o, name, err := a.exportOptions(store, args, ef)
	if err != nil {
		return err
	}
	if ef.key != nil {
		name += ".age"
	}
	to := &exportTo{app: a, force: ef.force, name: cmp.Or(ef.out, name), key: ef.key, pipe: &pipe{ctx: ctx, w: a.stdout.Content()}}
	defer to.discard()
	out, err := store.Export(ctx, o, to.open)
	if err == nil {
		err = to.commit()
	}
	if err != nil {
		return err
	}
	if to.target != nil && !a.out.machine() && within(filepath.Dir(store.Path()), to.target.Name()) {
		fmt.Fprintln(a.stderr, "the file is in the project: the next checkpoint stores it too, unless it is moved or ignored")
	}
	return a.printExported(out, to)
}

// within reports whether a path is below a folder.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// exportOptions returns what is exported, and the name of the file.
func (a *app) exportOptions(store *lifecycle.Store, args []string, ef exportFlags) (o carry.ExportOptions, name string, err error) {
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return o, "", err
	}
	o = carry.ExportOptions{
		All: ef.all, Lopen: versionText(), NoMessages: ef.noMessages,
		Specification: func(module string) string { return specPath(values, module) },
	}
	if ef.redact {
		if o.Redact, err = redact.New(values.RedactPatterns); err != nil {
			return o, "", usagef("%v", err)
		}
	}
	name = filepath.Base(filepath.Dir(store.Path()))
	if !ef.all {
		if len(args) == 0 {
			args = []string{""}
		}
		for _, arg := range args {
			id, err := store.Resolve(arg)
			if err != nil {
				return o, "", err
			}
			o.Sessions = append(o.Sessions, id)
		}
		if len(o.Sessions) == 1 {
			name = o.Sessions[0].String()
		}
	}
	return o, name + ".lopen.tar.zst", nil
}

// exportTo is where an export goes.
type exportTo struct {
	*app
	name   string
	force  bool
	target *carry.Target // nil for stdout
	pipe   *pipe         // stdout
	key    *crypt.Key
	began  bool
	size   int64
}

func (t *exportTo) open(h bundle.Header) (carry.Sink, error) {
	if t.name != "-" {
		t.discard()
		path, err := t.path(t.name)
		if err == nil {
			t.target, err = carry.Create(path, t.force)
		}
		if err != nil {
			return nil, err
		}
		return bundle.NewWriter(t, h, t.key)
	}
	if t.began {
		return nil, errors.New("what went to stdout is not whole: without what is damaged or was deleted it has to begin again, so call it once more with -o FILE")
	}
	t.began = true
	return bundle.NewWriter(t, h, t.key)
}

// Write writes to the file or to stdout.
func (t *exportTo) Write(p []byte) (n int, err error) {
	var w io.Writer = t.target
	if t.target == nil {
		w = t.pipe
	}
	n, err = w.Write(p)
	t.size += int64(n)
	return n, err
}

func (t *exportTo) commit() error {
	if t.target == nil {
		return nil
	}
	return t.target.Commit()
}

func (t *exportTo) discard() {
	if t.target != nil {
		t.target.Discard()
	}
	t.size = 0
}

func (a *app) printExported(out *carry.Exported, to *exportTo) error {
	row := exportRow{
		File: to.name, Size: to.size, Bytes: out.Bytes, Entries: out.Files, Checkpoints: out.Checkpoints, Objects: out.Objects, Project: out.InProject,
		Sessions: out.Header.Sessions, Documents: append([]bundle.Document{}, out.Header.Documents...), Skipped: []skippedRow{}, Warnings: append([]string{}, out.Warnings...),
	}
	for _, s := range out.Skipped {
		row.Skipped = append(row.Skipped, skippedRow{s.ID.String(), s.Err.Error()})
		fmt.Fprintf(a.stderr, "%s\n%s", plain.Line(s.Err.Error()), hint(s.Err))
	}
	for _, w := range out.Warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", plain.Line(w))
	}
	var err error
	if a.out.machine() {
		err = a.printJSON(row)
	} else {
		for _, s := range row.Sessions {
			fmt.Fprintf(a.stderr, "%s: %d/%d tasks done, record %d\n", s.ID, s.Done, s.Total, s.Seq)
		}
		fmt.Fprintf(a.stderr, "%s, %s, %s of checkpoints, %s; %s in %s\n", plain.Some(len(row.Sessions), "session"), plain.Some(row.Checkpoints, "checkpoint"),
			plain.Some(row.Objects, "content"), plain.Some(len(row.Documents), "document"), bytesText(row.Size), shown(row.File))
	}
	if err == nil && len(row.Skipped) > 0 {
		err = &problemsError{fmt.Sprintf("%s not exported", plain.Some(len(row.Skipped), "session"))}
	}
	return err
}
