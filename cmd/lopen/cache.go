package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
)

// cacheView is what `cache status --json` and `cache clear --json` print.
type cacheView struct {
	Path        string    `json:"path"`
	Sections    usageView `json:"sections"`
	Limit       int64     `json:"limit"` // bytes, of the sections
	Assessments usageView `json:"assessments"`
}

type usageView struct {
	Entries int        `json:"entries"`
	Bytes   int64      `json:"bytes"`
	Oldest  *time.Time `json:"oldest,omitempty"`
}

func viewOf(u sections.Usage) usageView {
	v := usageView{Entries: u.Entries, Bytes: u.Bytes}
	if !u.Oldest.IsZero() {
		at := u.Oldest.UTC()
		v.Oldest = &at
	}
	return v
}

func newCacheStatus(a *app) *cobra.Command {
	return a.cacheCommand("status", "Say what the caches take", "", sections.Use, assess.Use)
}

func newCacheClear(a *app) *cobra.Command {
	return a.cacheCommand("clear", "Remove what the caches hold: all of it can be derived again", "removed ", sections.Clear, assess.Clear)
}

// cacheCommand is a command that asks both caches for their usage.
func (a *app) cacheCommand(name, short, verb string, outlines func(store string) (sections.Usage, error), assessments func(store string) (assess.Usage, error)) *cobra.Command {
	return a.reads(&cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			config, err := store.Config()
			if err != nil {
				return err
			}
			values, err := a.settings(config, nil)
			if err != nil {
				return err
			}
			u, err := outlines(store.Path())
			if err != nil {
				return err
			}
			r, err := assessments(store.Path())
			if err != nil {
				return err
			}
			view := cacheView{Path: filepath.Join(store.Path(), "cache"), Sections: viewOf(u), Limit: int64(values.Int("cache_bytes")), Assessments: viewOf(r)}
			if a.out.machine() {
				return a.printJSON(view)
			}
			_, err = fmt.Fprintf(a.stdout, "sections     %s%d files, %s of %s\nassessments  %s%d, %s\n",
				verb, u.Entries, bytesText(u.Bytes), bytesText(view.Limit), verb, r.Entries, bytesText(r.Bytes))
			return err
		},
	})
}

func newCacheWarm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "warm [PATH...]",
		Short: "Read and parse the Markdown files that changed (default: the specifications)",
		RunE: func(cmd *cobra.Command, args []string) error {
			project, err := a.project()
			if err != nil {
				return err
			}
			values, err := a.projectSettings(project, nil)
			if err != nil {
				return err
			}
			names, err := a.documents(project, values, args)
			if err != nil {
				return err
			}
			return a.warm(cmd.Context(), project, values, names)
		},
	}
}

// warm makes sure of the outlines of documents, with a bar on a terminal.
func (a *app) warm(ctx context.Context, project string, values *settings.Values, names []string) error {
	docs, err := lifecycle.OpenDocuments(project)
	if err != nil {
		return err
	}
	defer docs.Close()
	c := openSections(a, docs, project, values, true)
	defer c.Close()
	begun := time.Now()
	var step func(int)
	if a.stderr.Terminal() {
		step = func(done int) {
			a.stderr.Control(eraseLine)
			fmt.Fprint(a.stderr, bar(done, len(names), 40))
		}
		defer a.stderr.Control(eraseLine)
	}
	err = c.Warm(ctx, names, step)
	s := c.Stats()
	fmt.Fprintf(a.stderr, "files: %d, parsed: %d, %s\n", len(names), s.Parses, time.Since(begun).Round(time.Millisecond))
	return err
}

// bar is a progress bar of some width.
func bar(done, total, width int) string {
	full := width * done / max(total, 1)
	return fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("=", full), strings.Repeat(" ", width-full), done, total)
}

// documents returns the Markdown files that the paths name, in folders those
// beneath them, relative to the project.
func (a *app) documents(project string, values *settings.Values, paths []string) (names []string, err error) {
	typed := len(paths) > 0
	if !typed {
		paths = []string{filepath.Join(project, filepath.FromSlash(values.String("requirements_dir")))}
	}
	docs, err := lifecycle.OpenDocuments(project)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	for _, p := range paths {
		if p, err = a.path(p); err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(project, p)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, usagef("%s is not in the project %s", p, project)
		}
		top := filepath.ToSlash(rel)
		err = fs.WalkDir(docs, top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && name != top && (d.Name() == lifecycle.Dir || d.Name() == git.Mark):
				return fs.SkipDir
			case d.Type().IsRegular() && (name == top || isMarkdown(d.Name())):
				names = append(names, name)
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) && !typed {
			return nil, nil // no specifications yet
		}
		if err != nil {
			return nil, notFound(err)
		}
	}
	return names, nil
}

func isMarkdown(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".md" || ext == ".markdown"
}
