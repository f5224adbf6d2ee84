package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan/research"
)

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
			d := research.Document{Topic: args[1], Created: time.Now(), Specification: place.spec}
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

// maxBody bounds what `research new` reads from stdin, in bytes.
const maxBody = 16 << 20

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
		found = append(found, research.Section{Header: s.Path, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(o.Text(s))))})
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
