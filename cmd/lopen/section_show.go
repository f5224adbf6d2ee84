package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSectionShow(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
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
				return fmt.Errorf("%w in %s; list them: lopen section list %s", err, args[0], plain.Quote(args[0]))
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
