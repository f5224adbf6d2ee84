package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/research"
)

// maxBody bounds what `research new` reads from stdin, in bytes.
const maxBody = 16 << 20

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

// A researchPlace is where a module's research documents are.
type researchPlace struct {
	docs   *lifecycle.Documents // the project
	folder string               // of the specification, relative to the project, with slashes
	spec   string               // the specification's name in it
}

func (a *app) researchPlace(module string) (*researchPlace, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &usageError{err}
	}
	store, err := a.open()
	if err != nil {
		return nil, err
	}
	defer release(store)
	config, err := store.Config()
	if err != nil {
		return nil, err
	}
	values, err := a.settings(config, nil)
	if err != nil {
		return nil, err
	}
	docs, err := lifecycle.OpenDocuments(filepath.Dir(store.Path()))
	if err != nil {
		return nil, err
	}
	spec := SpecPath(values, module)
	return &researchPlace{docs: docs, folder: path.Dir(spec), spec: path.Base(spec)}, nil
}

// outline returns a specification, nil where there is none.
func (p *researchPlace) outline(file string) (*cache.Outline, error) {
	src, err := loop.ReadSpec(p.docs, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cache.NewOutline(src), nil
}

func newResearchList(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
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

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func newResearchNew(a *app) *cobra.Command {
	var headers []string
	cmd := &cobra.Command{
		Use:   "new MODULE TOPIC [--section HEADER]...",
		Short: "Write a research document; its text comes from stdin",
		Long: `Write a research document; its text comes from stdin.

It goes beside the specification as RESEARCH-{topic}.md and into the index
RESEARCH.md. What the text lacks of Summary, Findings, Sources and Relevance
follows it, empty.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := a.researchPlace(args[0])
			if err != nil {
				return err
			}
			defer place.docs.Close()
			d := research.Document{Topic: args[1], Created: timeNow(), Specification: place.spec}
			if d.Sections, err = place.sections(headers); err != nil {
				return err
			}
			body, err := a.body()
			if err != nil {
				return err
			}
			project, err := os.OpenRoot(place.docs.Name())
			if err != nil {
				return err
			}
			defer project.Close()
			if err := project.MkdirAll(filepath.FromSlash(place.folder), 0o755); err != nil {
				return fmt.Errorf("make the folder of the document: %w", err)
			}
			file, err := research.Create(filepath.Join(place.docs.Name(), filepath.FromSlash(place.folder)), d, body)
			switch {
			case errors.Is(err, research.ErrTopic):
				return &usageError{err}
			case errors.Is(err, fs.ErrExist):
				return fmt.Errorf("there is a document on this topic already, which was left alone: %s", path.Join(place.folder, research.FileName(args[1])))
			}
			if file != "" {
				fmt.Fprintln(a.stdout, path.Join(place.folder, file))
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&headers, "section", nil, "a section of the specification that it is about, by `HEADER`")
	return cmd
}

// sections looks up the sections of the specification that a document is about.
func (p *researchPlace) sections(headers []string) (found []research.Section, err error) {
	if len(headers) == 0 {
		return nil, nil
	}
	o, err := p.outline(path.Join(p.folder, p.spec))
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, usagef("--section: there is no specification at %s", path.Join(p.folder, p.spec))
	}
	for _, h := range headers {
		s, err := o.Find(h)
		if err != nil {
			return nil, usagef("--section: %w", err)
		}
		found = append(found, research.Section{Header: s.Path, SHA256: sumOf(o.Text(s))})
	}
	return found, nil
}

// body reads a document's text. Where a person sits at stdin there is none.
func (a *app) body() ([]byte, error) {
	if isTerminal(a.stdin) {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(a.stdin, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the text from stdin: %w", err)
	}
	if len(body) > maxBody {
		return nil, usagef("the text on stdin is longer than %d MiB", maxBody>>20)
	}
	return body, nil
}
