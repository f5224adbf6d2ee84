package main

import (
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/plan/research"
	"github.com/lopen-dev/lopen/writer/plain"
)

// researchRow is a document as `research list --json` prints it.
type researchRow struct {
	Path          string            `json:"path"`
	Topic         string            `json:"topic"`
	Created       *time.Time        `json:"created,omitempty"`
	Specification string            `json:"specification,omitempty"`
	Sections      []researchSection `json:"sections,omitempty"`
	Drift         bool              `json:"drift"`
	Error         string            `json:"error,omitempty"`
}

type researchSection struct {
	Header string      `json:"header"`
	SHA256 string      `json:"sha256"`
	Drift  cache.Drift `json:"drift,omitempty"`
}

func newResearchList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list MODULE",
		Short: "List a module's research documents, and what has changed under them",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := a.researchPlace(args[0])
			if err != nil {
				return err
			}
			defer place.docs.Close()
			docs, err := research.List(place.docs, place.folder)
			if err != nil {
				return err
			}
			rows := place.rows(docs)
			if a.out.machine() {
				return a.printJSON(rows)
			}
			for _, r := range rows {
				fmt.Fprintf(a.stdout, "%s\t%s\n", shown(r.Path), plain.Line(r.Topic))
				for _, s := range r.Sections {
					if s.Drift != cache.Same {
						fmt.Fprintf(a.stdout, "  drift: section %q is %s since\n", s.Header, s.Drift)
					}
				}
				if r.Error != "" {
					fmt.Fprintf(a.stdout, "  %s\n", plain.Line(r.Error))
				}
			}
			return nil
		},
	})
}

// rows returns those of the documents, in their order. Each specification is read
// once, and one at a time is in memory.
func (p *researchPlace) rows(docs []research.Document) []researchRow {
	rows := make([]researchRow, len(docs))
	bySpec := map[string][]int{}
	for i, d := range docs {
		file := path.Join(p.folder, d.Specification)
		bySpec[file] = append(bySpec[file], i)
	}
	for file, list := range bySpec {
		spec := sync.OnceValues(func() (*cache.Comparer, error) {
			o, err := p.outline(file)
			if o == nil {
				return nil, err
			}
			return cache.NewComparer(o), nil
		})
		for _, i := range list {
			rows[i] = p.row(docs[i], spec)
		}
	}
	return rows
}

func (p *researchPlace) row(d research.Document, spec func() (*cache.Comparer, error)) researchRow {
	r := researchRow{Path: path.Join(p.folder, d.File), Topic: d.Topic, Specification: d.Specification}
	if !d.Created.IsZero() {
		r.Created = &d.Created
	}
	if d.Err != nil {
		r.Error = d.Err.Error()
	}
	if len(d.Sections) == 0 {
		return r
	}
	c, err := spec()
	if err != nil && r.Error == "" {
		r.Error = err.Error()
	}
	for _, s := range d.Sections {
		drift := cache.Gone
		if c != nil {
			drift = c.Section(s.Header, s.SHA256)
		}
		r.Sections = append(r.Sections, researchSection{Header: s.Header, SHA256: s.SHA256, Drift: drift})
		r.Drift = r.Drift || drift != cache.Same
	}
	return r
}
