package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// sectionRow is what `section list --json` prints of a section. Text is in
// `section show` only.
type sectionRow struct {
	Header    string  `json:"header"`
	Path      string  `json:"path"`
	Level     int     `json:"level"`
	Anchor    string  `json:"anchor"`
	FirstLine int     `json:"firstLine"`
	LastLine  int     `json:"lastLine"`
	Bytes     int     `json:"bytes"`
	Tokens    int     `json:"tokens"`
	Text      *string `json:"text,omitempty"`
}

func rowOf(s cache.Section) sectionRow {
	return sectionRow{Header: s.Header, Path: s.Path, Level: s.Level, Anchor: s.Anchor,
		FirstLine: s.FirstLine, LastLine: s.LastLine, Bytes: s.End - s.Start, Tokens: s.Tokens()}
}

// openSections opens the section cache of a project's documents. It keeps
// nothing on the disk where there is no store.
func openSections(a *app, docs fs.FS, project string, values *settings.Values, keep bool) *sections.Cache {
	store := ""
	if keep {
		store = filepath.Join(project, lifecycle.Dir)
	}
	return sections.Open(sections.Options{Docs: docs, Root: project, Store: store,
		Bytes: int64(values.Int("cache_bytes")), Logger: a.logger})
}

// watched keeps the outlines of a run's documents fresh in the background until
// the function that it returns is called.
func watched(ctx context.Context, c *sections.Cache, log zerolog.Logger, names ...string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Watch(ctx, names); err != nil {
			log.Debug().Err(err).Msg("documents are read when they are asked for")
		}
	}()
	return func() { cancel(); <-done }
}

// outlineOf returns the outline of a file that was named on the command line,
// through the section cache where the file belongs to a project.
func (a *app) outlineOf(file string) (*cache.Outline, error) {
	path, err := a.path(file)
	if err != nil {
		return nil, err
	}
	top, name := filepath.Split(path)
	values, err := a.settings(nil, nil)
	if err != nil {
		return nil, err
	}
	if project, err := a.project(); err == nil {
		if rel, err := filepath.Rel(project, path); err == nil && filepath.IsLocal(rel) {
			top, name = project, filepath.ToSlash(rel)
			if values, err = a.projectSettings(project, nil); err != nil {
				return nil, err
			}
		}
	}
	docs, err := lifecycle.OpenDocuments(top)
	if err != nil {
		return nil, notFound(err)
	}
	defer docs.Close()
	c := openSections(a, docs, top, values, true)
	defer c.Close()
	o, err := c.Outline(name)
	return o, notFound(err)
}

// notFound gives an error that says that a file is not there its exit code.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", err, lifecycle.ErrNotFound)
	}
	return err
}

// path is a path that was typed, from where the command was called or sent to.
func (a *app) path(typed string) (string, error) {
	if filepath.IsAbs(typed) {
		return filepath.Clean(typed), nil
	}
	start, err := a.start()
	return filepath.Join(start, typed), err
}

// projectSettings are the settings of a project, with or without a store. flags are
// those that were typed; nil for none.
func (a *app) projectSettings(project string, flags map[string]string) (*settings.Values, error) {
	store, err := lifecycle.Open(project, a.storeOptions(project))
	if errors.Is(err, lifecycle.ErrNoStore) {
		return a.settings(nil, flags)
	}
	if err != nil {
		return nil, err
	}
	defer release(store)
	config, err := store.Config()
	if err != nil {
		return nil, err
	}
	return a.settings(config, flags)
}

// storeSettings are the settings of a project that has a store.
func (a *app) storeSettings(store *lifecycle.Store) (*settings.Values, error) {
	config, err := store.Config()
	if err != nil {
		return nil, err
	}
	return a.settings(config, nil)
}

func newSectionList(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "list FILE",
		Short: "List the sections of a Markdown file",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := a.outlineOf(args[0])
			if err != nil {
				return err
			}
			rows := []sectionRow{}
			for _, s := range o.Sections() {
				rows = append(rows, rowOf(s))
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			if err := printMeta(a.stdout, o); err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			if len(rows) > 0 {
				fmt.Fprintln(w, "LINES\tBYTES\tTOKENS\tSECTION\tANCHOR")
			}
			for _, r := range rows {
				fmt.Fprintf(w, "%d-%d\t%d\t~%d\t%s%s\t#%s\n", r.FirstLine, r.LastLine, r.Bytes, r.Tokens, strings.Repeat("  ", r.Level-1), firstLine(r.Header), r.Anchor)
			}
			return w.Flush()
		},
	})
}

// printMeta prints what the front matter says in one value each: name, description
// and the like.
func printMeta(w io.Writer, o *cache.Outline) error {
	fields, err := o.Meta()
	if err != nil {
		fmt.Fprintf(w, "(%v)\n\n", firstLine(err.Error()))
		return nil
	}
	said := false
	for _, f := range fields {
		switch f.Value.(type) {
		case string, bool, int64, uint64, float64:
			fmt.Fprintf(w, "%s: %s\n", plain.Line(f.Name), firstLine(fmt.Sprint(f.Value)))
			said = true
		}
	}
	if said {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// firstLine is the first line of a text of the file's.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return plain.Line(line)
}

func newSectionShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show FILE HEADER",
		Short: "Print a section, byte for byte: by header, path (A/B) or #anchor",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := a.outlineOf(args[0])
			if err != nil {
				return err
			}
			s, err := o.Find(args[1])
			if errors.Is(err, cache.ErrNoSection) {
				return fmt.Errorf("%w in %s; list them: lopen section list %s", err, args[0], args[0])
			}
			if err != nil {
				return err
			}
			text := o.Text(s)
			if a.out.machine() {
				row := rowOf(s)
				row.Text = &text
				return a.printJSON(row)
			}
			_, err = fmt.Fprint(a.stdout.Content(), text)
			return err
		},
	})
}

func newSectionDrift(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "drift MODULE",
		Short: "Say which sections are no longer what the module's prompts were made of",
		Long: `Say which sections of the specification are no longer what the prompts of the
module's newest session were made of. The exit code is 3 if any is not.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := session.ValidateModule(args[0]); err != nil {
				return &usageError{err}
			}
			rows, err := a.drifted(args[0])
			if err != nil {
				return err
			}
			if a.out.machine() {
				err = a.printJSON(rows)
			} else {
				a.printDrift(rows)
			}
			if err == nil && len(rows) > 0 {
				err = &problemsError{fmt.Sprintf("drift: %d found", len(rows))}
			}
			return err
		},
	})
}

func (a *app) printDrift(rows []loop.Drift) {
	for _, d := range rows {
		header := d.Header
		if header == "" {
			header = "(the whole file)"
		}
		fmt.Fprintf(a.stdout, "%-8s %s  %s\n", d.State, shown(d.Path), plain.Line(header))
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "nothing drifted")
	}
}

// drifted compares what the module's newest session remembers with the files.
func (a *app) drifted(module string) ([]loop.Drift, error) {
	project, err := a.project()
	if err != nil {
		return nil, err
	}
	store, err := lifecycle.Open(project, a.storeOptions(project))
	if err != nil {
		return nil, err
	}
	defer release(store)
	id, err := store.Resolve(module)
	if err == nil && id.Module != module {
		err = fmt.Errorf("module %s has no session: %w", module, lifecycle.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	st, _, err := store.Read(id)
	if err != nil {
		return nil, err
	}
	values, err := a.projectSettings(project, nil)
	if err != nil {
		return nil, err
	}
	docs, err := lifecycle.OpenDocuments(project)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	c := openSections(a, docs, project, values, true)
	defer c.Close()
	var unread error // of what cannot be read nobody knows whether it drifted
	rows := loop.Drifted(func(name string) (*cache.Outline, error) {
		o, err := c.Outline(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = err
		}
		return o, err
	}, st.Header().Resources)
	if unread != nil {
		return nil, unread
	}
	if rows == nil {
		rows = []loop.Drift{} // [] in JSON
	}
	return rows, nil
}
