package main

import (
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newSection(a *app) *cobra.Command {
	return group("section", "List and show the sections of a document, and what drifted", newSectionList(a), newSectionShow(a), newSectionDrift(a))
}

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

// openSections opens the section cache of the documents in a project's folder, or in that of a
// linked work tree. It keeps nothing on the disk where there is no store.
func openSections(a *app, docs fs.FS, project string, values *settings.Values, keep bool) *sections.Cache {
	store := ""
	if keep {
		store = filepath.Join(project, lifecycle.Dir)
		if home, here, err := a.places(); err == nil && here == project {
			store = filepath.Join(home, lifecycle.Dir)
		}
	}
	return sections.Open(sections.Options{Docs: docs, Root: project, Store: store,
		Bytes: int64(values.CacheBytes), Logger: a.logger})
}

// outlineOf returns the outline of a file that was named on the command line,
// through the section cache where the file belongs to a project.
func (a *app) outlineOf(file string) (*cache.Outline, error) {
	path, err := a.path(file)
	if err != nil {
		return nil, err
	}
	top, name := filepath.Split(path)
	values, err := a.settings(nil)
	if err != nil {
		return nil, err
	}
	if home, here, err := a.places(); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
			top, name = here, filepath.ToSlash(rel)
			if values, err = a.projectSettings(home, nil); err != nil {
				return nil, err
			}
		}
	}
	docs, err := documents.Open(top)
	if err != nil {
		return nil, notFound(err)
	}
	defer docs.Close()
	c := openSections(a, docs, top, values, true)
	defer c.Close()
	o, err := c.Outline(name)
	return o, notFound(err)
}
