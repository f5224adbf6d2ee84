package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newSectionDrift(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
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

func (a *app) printDrift(rows []prompt.Drift) {
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
func (a *app) drifted(module string) ([]prompt.Drift, error) {
	store, err := a.open()
	if err != nil {
		return nil, err
	}
	defer release(store)
	project := store.Project().Name()
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
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return nil, err
	}
	docs, err := documents.Open(project)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	c := openSections(a, docs, project, values, true)
	defer c.Close()
	var unread error // of what cannot be read nobody knows whether it drifted
	rows := prompt.Drifted(func(name string) (*cache.Outline, error) {
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
		rows = []prompt.Drift{} // [] in JSON
	}
	return rows, nil
}
