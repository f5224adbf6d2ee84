package main

import (
	"errors"
	"io/fs"
	"path"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newResearch(a *app) *cobra.Command {
	return group("research", "List and write research documents", newResearchList(a), newResearchNew(a))
}

// A researchPlace is where a module's research documents are.
type researchPlace struct {
	docs   *documents.Folder // the project
	folder string            // of the specification, relative to the project, with slashes
	spec   string            // the specification's name in it
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
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return nil, err
	}
	_, here, err := a.places()
	if err != nil {
		return nil, err
	}
	docs, err := documents.Open(here)
	if err != nil {
		return nil, err
	}
	spec := specPath(values, module)
	return &researchPlace{docs: docs, folder: path.Dir(spec), spec: path.Base(spec)}, nil
}

// outline returns a specification, nil where there is none.
func (p *researchPlace) outline(file string) (*cache.Outline, error) {
	src, err := prompt.ReadSpec(p.docs, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cache.NewOutline(src), nil
}
