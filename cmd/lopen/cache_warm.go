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

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newCacheWarm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "warm [PATH...]",
		Short: "Read and parse the Markdown files that changed (default: the specifications)",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, values, err := a.here()
			if err != nil {
				return err
			}
			_, project, err := a.places()
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
	docs, err := documents.Open(project)
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
		paths = []string{filepath.Join(project, filepath.FromSlash(values.RequirementsDir))}
	}
	docs, err := documents.Open(project)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	for _, p := range paths {
		if p, err = a.path(p); err != nil {
			return nil, err
		}
		name, err := a.within(project, p)
		if err != nil {
			return nil, err
		}
		beneath, err := markdownBeneath(docs, name)
		if errors.Is(err, fs.ErrNotExist) && !typed {
			return nil, nil // no specifications yet
		}
		if err != nil {
			return nil, notFound(err)
		}
		names = append(names, beneath...)
	}
	return names, nil
}

// markdownBeneath returns the Markdown files in a folder, or a file whatever its name is.
func markdownBeneath(docs fs.FS, top string) (names []string, err error) {
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
	return names, err
}

func isMarkdown(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".md" || ext == ".markdown"
}
